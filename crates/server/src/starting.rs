//! What clients are told while the database is being opened: 57P03, and how far that is.
use crate::connection::Wire;
use crate::error::Failure;
use crate::lobby::{Lobby, Seat};
use crate::startup::{Opened, opening};
use crate::tls::Tls;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::EngineError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a client may take to say what it wants.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long accepting rests after an error.
const REST: Duration = Duration::from_millis(100);

/// Answers clients until `work`, which opens the database, is done; then the listener is there for [`crate::serve`].
/// `progress` says how far that is. Logins are refused with 57P03, requests to cancel are passed over.
pub async fn while_starting<T>(
    listener: TcpListener,
    tls: Option<Tls>,
    progress: impl Fn() -> String + Send + Sync + 'static,
    work: impl Future<Output = T>,
) -> (TcpListener, T) {
    let (stop, stopping) = watch::channel(false);
    let mut accepting = JoinSet::new();
    accepting.spawn(accept(listener, Arc::new(Starting { tls, progress: Box::new(progress), stopping })));
    let done = work.await;
    stop.send_replace(true);
    let listener = accepting.join_next().await.expect("it was spawned above").expect("accepting does not panic");
    (listener, done)
}

struct Starting {
    tls: Option<Tls>,
    progress: Box<dyn Fn() -> String + Send + Sync>,
    stopping: watch::Receiver<bool>,
}

async fn accept(listener: TcpListener, starting: Arc<Starting>) -> TcpListener {
    let (mut tasks, lobby) = (JoinSet::new(), Arc::new(Lobby::default()));
    let mut stopping = starting.stopping.clone();
    loop {
        tokio::select! {
            biased;
            () = async { drop(stopping.wait_for(|stopping| *stopping).await) } => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => drop(tasks.spawn(answer(starting.clone(), socket, peer, lobby.enter()))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // A pause on this task alone; no engine is there yet whose clock could be asked.
                    let _ = tokio::time::timeout(REST, std::future::pending::<()>()).await;
                }
            },
        }
    }
    // They end by themselves.
    tasks.detach_all();
    listener
}

async fn answer(starting: Arc<Starting>, socket: TcpStream, peer: SocketAddr, seat: Seat) {
    // Who is about to ask is not cut off when the opening ends: libpq cannot read an answer to what it has not asked.
    let (_held, never) = watch::channel(false);
    let mut wire = Wire::new(socket, peer, never);
    let talk = async {
        let asked = tokio::time::timeout(DEADLINE, opening(&mut wire, starting.tls.as_ref())).await;
        let error = match asked.unwrap_or(Err(Failure::Gone)) {
            Ok(Opened::Cancel { .. }) | Err(Failure::Gone) => return,
            Err(Failure::Fatal(error) | Failure::Statement(error)) => error,
            Ok(Opened::Startup { .. }) => {
                let error = EngineError::new("57P03", "the database system is starting up");
                error.with_detail((starting.progress)())
            }
        };
        wire.end(Failure::Fatal(error)).await;
    };
    tokio::select! {
        biased;
        () = seat.lost() => {}
        () = talk => {}
    }
}
