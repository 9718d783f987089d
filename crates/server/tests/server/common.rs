//! A server in this process over memory devices, and clients of it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
pub mod raw;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::MemoryDevice;
use terrace_engine::{Database, EngineConfig};
use terrace_env::{Env, Real};
use terrace_server::{Limits, ServeError, serve};
use terrace_sql::SqlDatabase;
use terrace_storage::{DeviceSet, StorageConfig};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// Long enough for a statement that does not have to wait; how long we watch one that has to.
pub const PATIENCE: Duration = Duration::from_millis(200);

pub async fn database() -> SqlDatabase {
    let device = |name: &str| Arc::new(MemoryDevice::new(name, 1 << 34));
    let env: Env = Real::on(tokio::runtime::Handle::current());
    let devices = DeviceSet::from_fn(|name| device(name));
    let storage =
        StorageConfig { pool_bytes: 32 << 20, segment_size: 1 << 20, log_buffer: 1 << 20, ..Default::default() };
    let engine = Database::create(env, devices, storage, EngineConfig::default()).await.expect("an empty database");
    SqlDatabase::new(engine)
}

pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    pub async fn start() -> Server {
        Server::with(Limits::default()).await
    }

    pub async fn with(limits: Limits) -> Server {
        Server::of(database().await, limits).await
    }

    pub async fn of(db: SqlDatabase, limits: Limits) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { drop(stopped.await) };
        let serving = background(serve(db, listener, limits, shutdown));
        Server { address, stop: Some(stop), serving }
    }

    pub fn config(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.address.port()).user("terrace").dbname("terrace");
        config
    }

    pub async fn client(&self) -> Client {
        self.connect(&self.config()).await.unwrap()
    }

    pub async fn connect(&self, config: &tokio_postgres::Config) -> Result<Client, Error> {
        let (client, connection) = config.connect(NoTls).await?;
        background(async { drop(connection.await) });
        Ok(client)
    }

    /// Stops the server as an administrator does.
    pub async fn stop(mut self) -> Result<(), ServeError> {
        drop(self.stop.take());
        self.serving.await.expect("the server does not panic")
    }
}

#[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
pub fn background<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// The SQLSTATE of a statement that must fail.
pub fn state<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.expect_err("it must fail");
    error.code().unwrap_or_else(|| panic!("no SQLSTATE: {error:?}")).code().to_owned()
}

/// Rows of a simple query as `a|b`, NULL as `NULL`.
pub async fn rows(client: &Client, sql: &str) -> Result<Vec<String>, Error> {
    let messages = client.simple_query(sql).await?;
    Ok(shown(&messages))
}

pub fn shown(messages: &[SimpleQueryMessage]) -> Vec<String> {
    let row = |m: &SimpleQueryMessage| match m {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|i| row.get(i).unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    messages.iter().filter_map(row).collect()
}

/// Asserts that `statement` does not end for a while: it waits for a lock.
pub async fn waits<T>(statement: &mut (impl Future<Output = T> + Unpin)) {
    assert!(tokio::time::timeout(PATIENCE, statement).await.is_err(), "the statement must wait");
}

/// Awaits what must not wait for long any more.
pub async fn soon<T>(statement: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), statement).await.expect("the statement must go on")
}
