//! Accepts connections and ends them.
use crate::auth::Auth;
use crate::connection;
use crate::lobby::Lobby;
use crate::registry::Registry;
use crate::tls::Tls;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use terrace_env::Env;
use terrace_sql::SqlDatabase;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What clients may do: how many, how much, how long, and what they must show.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sessions at a time; one more is told 53300.
    pub max_connections: usize,
    /// Bytes of one message of a client; a longer one is passed over and fails (54000).
    pub max_message: usize,
    /// Bytes of one string of statements; a longer one fails (54000).
    pub max_statement: usize,
    /// How long a client may take from connecting to its first ReadyForQuery.
    pub startup_timeout: Duration,
    /// A session that sends nothing for so long is ended (57P05). `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Who needs a password.
    pub auth: Auth,
    /// With it, clients that ask for TLS get it, and those on other machines must.
    pub tls: Option<Tls>,
    /// How long sessions may take to end after shutdown was asked for.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_connections: 100,
            max_message: 64 << 20,
            max_statement: 16 << 20,
            startup_timeout: Duration::from_secs(60),
            idle_timeout: None,
            auth: Auth::default(),
            tls: None,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the listening socket: {0}")]
    Listener(#[from] std::io::Error),
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) db: SqlDatabase,
    pub(crate) env: Env,
    pub(crate) limits: Limits,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lobby: Arc<Lobby>,
    /// Of this process: salts of roles that do not exist are made from it.
    pub(crate) mock_salt: Vec<u8>,
    /// True once the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Serves clients until `shutdown` is done, then tells them (57P01), rolls their transactions back and returns. Runs on
/// a tokio runtime with I/O and time enabled.
pub async fn serve(
    db: SqlDatabase,
    listener: TcpListener,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let env = db.engine.store().env().clone();
    let (stop, stopping) = watch::channel(false);
    let random = [env.random_u64(), env.random_u64()];
    let mock_salt = random.map(u64::to_be_bytes).concat();
    let shared =
        Arc::new(Shared { db, env, limits, registry: Arc::default(), lobby: Arc::default(), mock_salt, stopping });
    let mut tasks = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = tasks.join_next() => {}
            // Nobody is kept waiting: sessions are limited by the registry, all others by the lobby.
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    tasks.spawn(connection::run(shared.clone(), socket, peer, shared.lobby.enter()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: connections that end give some back.
                    tracing::warn!(%error, "cannot accept a connection");
                    shared.env.sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    // Statements are cancelled before anybody is woken to roll back: none may gain a lock by another's end and go on.
    stop.send_if_modified(|stopping| {
        *stopping = true;
        false
    });
    shared.registry.cancel_all();
    stop.send_replace(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(shared.limits.shutdown_grace, all).await.is_err() {
        tracing::warn!(connections = tasks.len(), "ending connections that did not end in time");
        tasks.shutdown().await;
    }
    Ok(())
}
