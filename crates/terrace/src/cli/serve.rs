//! `terrace serve`: the port is open first, then the database.

use crate::Failure;
use parking_lot::Mutex;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use terrace::Instance;
use terrace::admin::{StopMode, StopRequest};
use terrace::config::{AuthName, Server, check_listen};
use terrace::instance::Claimed;
use terrace::sql::SqlDatabase;
use terrace::sql::observe::watch_locks;
use terrace::storage::RecoveryProgress;
use terrace_server::{Auth, Limits, Tls, while_starting};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Prints a line where somebody may read it. A closed pipe or a full disk behind standard output is no reason to stop
/// serving, or not to close the database.
macro_rules! say {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($line)*);
    }};
}
pub(crate) use say;

/// Where clients come, and what they may do.
struct Door {
    listen: SocketAddr,
    listener: TcpListener,
    metrics: Option<TcpListener>,
    limits: Limits,
}

impl Door {
    async fn open(dir: &Path, server: &Server, listen: SocketAddr) -> Result<Door, Failure> {
        check_listen(listen, server.auth).map_err(|why| Failure::Message(format!("--listen: {why}")))?;
        let limits = limits(dir, server)?;
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::AddrInUse => "; another server listens there: choose another port with --listen",
                _ => "",
            };
            Failure::Message(format!("cannot listen on {listen}: {error}{hint}"))
        })?;
        let metrics = match server.metrics.0 {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
                Failure::Message(format!("cannot listen on {address} (server.metrics in terrace.toml): {error}"))
            })?),
            None => None,
        };
        Ok(Door { listen, listener, metrics, limits })
    }
}

/// Opens a database and serves it. Clients that connect before it is open get an error that says so, and how far
/// opening is.
pub(crate) async fn open_and_serve(dir: &Path, listen: Option<SocketAddr>) -> Result<(), Failure> {
    let mut signals = StopSignals::new()?; // Before the port is open: who has seen it may ask for a stop.
    let claimed = Claimed::new(dir)?;
    let Door { listen, listener, metrics, limits } =
        Door::open(dir, &claimed.config.server, listen.unwrap_or(claimed.config.server.listen)).await?;
    let progress = Arc::new(RecoveryProgress::default());
    let (opening, shown) =
        (claimed.open(progress.clone()), move || format!("The database is being opened: {}.", progress.state()));
    let starting = while_starting(listener, limits.tls.clone(), shown, opening);
    let (listener, opened) = tokio::select! {
        opened = starting => opened,
        () = signals.received() => {
            say!("stopped while the database was being opened; the next start goes on");
            std::process::exit(0);
        }
    };
    let instance = opened?;
    crate::cli::report::opened(&instance.report);
    serve_at(instance, Door { listen, listener, metrics, limits }, signals).await
}

/// Serves an open database.
pub(crate) async fn serve(instance: Instance, listen: SocketAddr) -> Result<(), Failure> {
    match Door::open(&instance.dir, &instance.config.server, listen).await {
        Ok(door) => match StopSignals::new() {
            Ok(signals) => serve_at(instance, door, signals).await,
            Err(failure) => Err(close_after(instance, failure).await),
        },
        Err(failure) => Err(close_after(instance, failure).await),
    }
}

/// Closes what cannot be served. What went wrong first is what to report.
async fn close_after(instance: Instance, failure: Failure) -> Failure {
    if let Err(error) = instance.close().await {
        tracing::error!(%error, "closing the database");
    }
    failure
}

/// Serves until Ctrl-C or SIGTERM, then closes the database. Where storage fails it starts anew, which recovers.
async fn serve_at(instance: Instance, door: Door, signals: StopSignals) -> Result<(), Failure> {
    let (began, listen) = (instance.env.now(), door.listen);
    let asked = match serve_until_stopped(&instance, door, signals).await {
        Ok(asked) => asked,
        Err(failure) => return Err(close_after(instance, failure).await),
    };
    if let Some(tier) = instance.database.store().flash() {
        crate::cli::report::flash(&tier);
    }
    if let Some(error) = instance.database.failure() {
        let served = Duration::from_nanos(instance.env.now().0 - began.0);
        let dir = instance.dir.clone();
        drop(instance.close().await); // It says again what failed.
        return Err(crate::cli::restart::restart(&dir, listen, &error, served));
    }
    let mode = asked.as_ref().and_then(|asked| asked.mode).unwrap_or_else(|| instance.stop_mode());
    let (env, database) = (instance.env.clone(), instance.database.clone());
    let left = move || (database.store().pages_to_write(), database.rollbacks_left());
    match mode {
        StopMode::Fast => say!("leaving {} changed pages to the flash tier and the log ...", left().0),
        StopMode::Clean => say!("writing everything home ..."),
    }
    let mut asked = asked;
    let progress = async {
        loop {
            env.sleep(PROGRESS).await;
            let (pages, rollbacks) = left();
            match rollbacks {
                0 => say!("{pages} pages are left"),
                _ => say!("{pages} pages are left, and {rollbacks} transactions to roll back"),
            }
            if let Some(asked) = &mut asked {
                asked.tell(pages).await;
            }
        }
    };
    tokio::select! {
        closed = instance.close_as(mode) => closed?,
        () = progress => unreachable!("it has no end"),
    }
    drop(asked); // Who asked hears that it has ended.
    say!("stopped");
    Ok(())
}

/// Returns who asked for the end, if it was not a signal.
async fn serve_until_stopped(
    instance: &Instance,
    door: Door,
    mut signals: StopSignals,
) -> Result<Option<StopRequest>, Failure> {
    let Door { listen, listener, metrics, limits } = door;
    let address = listener.local_addr().unwrap_or(listen);
    say!("ready on {address}. Connect with:");
    say!("  psql -h {} -p {} -U terrace terrace", address.ip(), address.port());
    say!("Ctrl-C stops it.");
    let failed = storage_failed(instance);
    let (stops, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let asked = Arc::new(Mutex::new(None));
    let noted = asked.clone();
    let shutdown = async move {
        tokio::select! {
            biased;
            () = signals.received() => {}
            Some(request) = requests.recv() => *noted.lock() = Some(request),
            () = failed => return,
        }
        say!("stopping ...");
        // Asked twice means at once: what is committed is safe, the next start recovers.
        impatient(signals);
    };
    let hangup = handler(SignalKind::hangup())?;
    let db = instance.sql();
    db.observed.set_log(instance.config.logging.options());
    let serving = terrace_server::serve(db.clone(), listener, limits, shutdown);
    let admin = terrace::admin::listen(&instance.dir)?;
    let answering = terrace::admin::serve(admin, instance.dir.clone(), instance.database.clone(), stops);
    // What else goes on ends with serving.
    let served = tokio::select! {
        served = serving => served.map_err(|error| Failure::Message(error.to_string())),
        () = beside(db, metrics) => unreachable!("it has no end"),
        () = answering => unreachable!("it has no end"),
        () = reload(hangup, instance) => unreachable!("it has no end"),
    };
    terrace::admin::remove(&instance.dir);
    served.map(|()| asked.lock().take())
}

/// How often a stop says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// How often storage is asked whether it works.
const LOOK: Duration = Duration::from_millis(100);

/// Ends when storage has failed, or the engine above it (a rollback that cannot be done): from then on nothing can be
/// committed, and much not be read.
fn storage_failed(instance: &Instance) -> impl Future<Output = ()> + Send + use<> {
    let (env, database) = (instance.env.clone(), instance.database.clone());
    async move {
        while database.failure().is_none() {
            env.sleep(LOOK).await;
        }
    }
}

/// Reads terrace.toml again at each SIGHUP, and when a session asks for it.
async fn reload(mut hangup: Signal, instance: &Instance) {
    loop {
        tokio::select! {
            () = instance.settings.asked() => {}
            signal = hangup.recv() => {
                if signal.is_none() {
                    std::future::pending::<()>().await;
                }
            }
        }
        match instance.settings.reload().await {
            Ok(false) => tracing::info!("terrace.toml was read again"),
            Ok(true) => {
                tracing::warn!("terrace.toml was read again; what differs outside of [flash_tier] waits for a restart")
            }
            Err(error) => tracing::error!(%error, "terrace.toml was read again; nothing is changed"),
        }
    }
}

/// What goes on beside serving, until it is dropped.
async fn beside(db: SqlDatabase, metrics: Option<TcpListener>) {
    let watching = watch_locks(db.engine.clone(), db.observed.clone());
    match metrics {
        Some(listener) => {
            if let Ok(address) = listener.local_addr() {
                say!("metrics at http://{address}/metrics");
            }
            tokio::join!(watching, terrace_server::serve_metrics(db, listener));
        }
        None => watching.await,
    }
}

fn limits(dir: &Path, server: &Server) -> Result<Limits, Failure> {
    let auth = match server.auth {
        AuthName::Trust => Auth::TrustLoopback,
        AuthName::Password => Auth::Password,
    };
    let tls = if server.tls_cert.as_os_str().is_empty() {
        None
    } else {
        let (cert, key) = (dir.join(&server.tls_cert), dir.join(&server.tls_key));
        Some(Tls::load(&cert, &key).map_err(|error| Failure::Message(error.to_string()))?)
    };
    Ok(Limits { max_connections: server.max_connections, auth, tls, ..Limits::default() })
}

/// Ctrl-C and SIGTERM.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn new() -> Result<StopSignals, Failure> {
        Ok(StopSignals { interrupt: handler(SignalKind::interrupt())?, terminate: handler(SignalKind::terminate())? })
    }

    async fn received(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn handler(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::Message(format!("cannot listen for signals: {error}")))
}

/// Ends the process at the next signal.
fn impatient(mut signals: StopSignals) {
    let wait = async move {
        signals.received().await;
        let _ = writeln!(std::io::stderr(), "terrace: stopped at once; the next start recovers");
        std::process::exit(130);
    };
    tokio::runtime::Handle::current().spawn(wait);
}
