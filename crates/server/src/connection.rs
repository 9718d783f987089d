//! One client's connection: its buffers, its messages in turn, its end.
use crate::copy::{CopyOut, copy_from_file, copy_in};
use crate::copy_file::CopyFile;
use crate::encode::Shown;
use crate::error::{Failure, error_response, fatal, notice_response, protocol};
use crate::extended::Portals;
use crate::frontend::{Message, Refused, next_frame};
use crate::lobby::Seat;
use crate::registry::Place;
use crate::rows::Rows;
use crate::serve::Shared;
use crate::startup;
use crate::tls::{Socket, Tls};
use bytes::{Buf, BytesMut};
use futures::FutureExt;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, NotificationResponse, ReadyForQuery, TransactionStatus,
};
use pgwire::messages::startup::ParameterStatus;
use socket2::{SockRef, TcpKeepalive};
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::{Datum, EngineError};
use terrace_env::memory::Meter;
use terrace_sql::{Outcome, Prepared, Reported, Session, TxnStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Bytes of answers that wait before they are sent without being asked for.
pub const FLUSH_AT: usize = 64 << 10;

/// Bytes of a message from which on it is handled at length.
const LARGE_MESSAGE: usize = 16 << 10;

/// Bytes of a client's next messages that are read while a statement of its runs.
const READ_AHEAD: usize = 64 << 10;

/// How long a client may be silent, and what it is told then.
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    limit: Duration,
    state: &'static str,
    what: &'static str,
}

/// The socket and its buffers.
pub(crate) struct Wire {
    socket: Socket,
    pub(crate) peer: SocketAddr,
    pub(crate) input: BytesMut,
    pub(crate) output: BytesMut,
    /// Done once the server stops. Waited for anew with each read, made once.
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The same of the session, once there is one.
    terminated: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Wire {
    pub(crate) fn new(socket: TcpStream, peer: SocketAddr, mut stopping: watch::Receiver<bool>) -> Wire {
        let _ = socket.set_nodelay(true);
        // A client's machine that vanished is noticed after two minutes, if nothing is sent, and as soon if something
        // is.
        let alive = TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));
        let _ = SockRef::from(&socket).set_tcp_keepalive(&alive.with_retries(4));
        let _ = SockRef::from(&socket).set_tcp_user_timeout(Some(Duration::from_secs(120)));
        let stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
        let (input, output) = (BytesMut::new(), BytesMut::new());
        let terminated = Box::pin(std::future::pending());
        Wire { socket: Socket::Plain(socket), peer, input, output, stop: Box::pin(stop.fuse()), terminated }
    }

    /// Appends an answer to the output.
    pub(crate) fn put(&mut self, answer: Answer) {
        answer.encode(&mut self.output).expect("answers are within their size limits, and a buffer grows");
    }

    pub(crate) fn notices(&mut self, notices: &[EngineError]) {
        notices.iter().for_each(|notice| self.put(Answer::NoticeResponse(notice_response(notice))));
    }

    /// Sends the output. A client that takes none is given up when its session is terminated: nothing could be told
    /// after a part of a message.
    pub(crate) async fn flush(&mut self) -> Result<(), Failure> {
        if !self.output.is_empty() {
            tokio::select! {
                biased;
                sent = send(&mut self.socket, &self.output) => sent?,
                () = &mut self.terminated => return Err(Failure::Gone),
            }
            self.output.clear();
        }
        Ok(())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.socket, Socket::Tls(_))
    }

    /// Goes on encrypted. Nothing that came before may be in the input.
    pub(crate) async fn encrypt(&mut self, tls: &Tls) -> Result<(), Failure> {
        assert!(self.input.is_empty() && self.output.is_empty(), "the client waits for the answer");
        match std::mem::replace(&mut self.socket, Socket::Gone) {
            Socket::Plain(socket) => self.socket = tls.accept(socket).await?,
            Socket::Tls(_) | Socket::Gone => return Err(Failure::Fatal(protocol("TLS within TLS was asked for"))),
        }
        Ok(())
    }

    /// Runs `work` to its end, or until the client is gone: nobody waits for a lock, or keeps others waiting, for
    /// nobody. What the client sends meanwhile is kept, up to [`READ_AHEAD`] bytes. Work that is dropped must be
    /// followed by a rollback.
    pub(crate) async fn watch<T>(&mut self, mut work: impl Future<Output = T> + Unpin) -> Result<T, Failure> {
        loop {
            let listening = self.input.len() < READ_AHEAD;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                read = self.socket.read_buf(&mut self.input), if listening => match read {
                    Ok(0) | Err(_) => return Err(Failure::Gone),
                    Ok(_) => {}
                },
            }
        }
    }

    /// Waits for more bytes of the client; fails when it left, was idle for too long, or the server stops.
    pub(crate) async fn read(&mut self, idle: Option<Idle>) -> Result<(), Failure> {
        self.input.reserve(8 << 10);
        let bytes = async {
            let read = self.socket.read_buf(&mut self.input);
            match idle {
                None => Some(read.await),
                Some(idle) => tokio::time::timeout(idle.limit, read).await.ok(),
            }
        };
        tokio::select! {
            biased;
            () = &mut self.stop => Err(shutting_down()),
            () = &mut self.terminated => Err(shutting_down()),
            read = bytes => match read {
                None => {
                    let idle = idle.expect("only a limit gives no answer");
                    Err(fatal(idle.state, format!("terminating connection due to {}", idle.what)))
                }
                Some(Ok(0)) | Some(Err(_)) => Err(Failure::Gone),
                Some(Ok(_)) => Ok(()),
            },
        }
    }

    /// Reads so many bytes of the client's, and forgets them.
    pub(crate) async fn pass_over(&mut self, mut bytes: usize, idle: Option<Idle>) -> Result<(), Failure> {
        loop {
            let here = bytes.min(self.input.len());
            self.input.advance(here);
            bytes -= here;
            if bytes == 0 {
                return Ok(());
            }
            self.read(idle).await?;
        }
    }

    /// The last words, as far as the client takes them.
    pub(crate) async fn end(&mut self, failure: Failure) {
        if let Failure::Statement(e) | Failure::Fatal(e) = failure {
            self.put(Answer::ErrorResponse(error_response(&e, "FATAL", None)));
            // Anything unread would make the kernel answer with a reset, which may overtake the last words.
            let linger = async {
                if self.flush().await.is_ok() && self.socket.shutdown().await.is_ok() {
                    let mut discard = [0; 4096];
                    while matches!(self.socket.read(&mut discard).await, Ok(n) if n > 0) {}
                }
            };
            let _ = tokio::time::timeout(Duration::from_millis(500), linger).await;
        }
    }
}

async fn send(socket: &mut Socket, output: &[u8]) -> std::io::Result<()> {
    socket.write_all(output).await?;
    // TLS keeps back what it has not encrypted and sent.
    socket.flush().await
}

fn shutting_down() -> Failure {
    fatal("57P01", "terminating connection due to administrator command")
}

/// What a session's end is put down to: where storage has failed and the server stops, that is why.
fn reason(shared: &Shared, failure: Failure) -> Failure {
    match shared.db.engine.failure() {
        Some(error) if *shared.stopping.borrow() && !matches!(failure, Failure::Gone) => {
            fatal("57P02", format!("terminating connection because the server must recover: {error}"))
        }
        _ => failure,
    }
}

pub(crate) fn ready_status(status: TxnStatus) -> TransactionStatus {
    match status {
        TxnStatus::Idle => TransactionStatus::Idle,
        TxnStatus::InTransaction => TransactionStatus::Transaction,
        TxnStatus::Failed => TransactionStatus::Error,
    }
}

/// Serves one client to the end. Never panics: a panic below is the client's XX000 and this connection's end.
pub(crate) async fn run(shared: Arc<Shared>, socket: TcpStream, peer: SocketAddr, seat: Seat) {
    let mut wire = Wire::new(socket, peer, shared.stopping.clone());
    // Kept until a session is there.
    let mut seat = Some(seat);
    // Whatever this connection's polls allocate is its session's.
    let counted = Meter::new(shared.db.memory.clone());
    let end = AssertUnwindSafe(counted.over(pin!(live(&shared, &mut wire, &mut seat)))).catch_unwind().await;
    let failure = match end {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure,
        Err(_) => {
            tracing::error!("a session panicked; its connection is closed");
            wire.output.clear();
            fatal("XX000", "internal error: the session is closed")
        }
    };
    let mut last_words = Box::pin(wire.end(reason(&shared, failure)));
    match seat {
        None => last_words.await,
        Some(seat) => tokio::select! {
            () = seat.lost() => {}
            () = &mut last_words => {}
        },
    }
}

async fn live(shared: &Arc<Shared>, wire: &mut Wire, seat: &mut Option<Seat>) -> Result<(), Failure> {
    let started = {
        let starting = tokio::time::timeout(shared.limits.startup_timeout, startup::start(shared, wire));
        let place = seat.as_ref().expect("nobody has taken it yet");
        tokio::select! {
            biased;
            // Others want the place: nothing is said, for that would take time.
            () = place.lost() => return Err(Failure::Gone),
            started = starting => started.unwrap_or(Err(Failure::Gone))?,
        }
    };
    let Some(mut connection) = started else { return Ok(()) };
    drop(seat.take());
    let end = connection.serve(wire).await;
    // Portals hold streams of the transaction: they go first.
    connection.portals.clear();
    connection.session.close().await;
    end
}

/// A session with what the protocol keeps beside it.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    pub(crate) session: Session,
    pub(crate) portals: Portals,
    /// An extended-protocol message failed; everything up to Sync is skipped.
    skipping: bool,
    /// What the client was last told of.
    told: Arc<Reported>,
    _place: Place,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, session: Session, place: Place) -> Connection {
        let portals = Portals::default();
        let told = session.reported();
        Connection { shared, session, portals, skipping: false, told, _place: place }
    }

    async fn serve(&mut self, wire: &mut Wire) -> Result<(), Failure> {
        let canceller = self.session.canceller();
        wire.terminated = Box::pin(canceller.terminated().fuse());
        loop {
            if canceller.is_terminated() {
                return Err(shutting_down());
            }
            let mut large = false;
            let (extended, message) = match next_frame(&mut wire.input, self.shared.limits.max_message) {
                Ok(Some(frame)) => {
                    large = frame.body.len() >= LARGE_MESSAGE;
                    (frame.is_extended(), frame.decode())
                }
                Ok(None) => {
                    let heard = tokio::select! {
                        biased;
                        read = wire.read(self.idle()) => {
                            read?;
                            false
                        }
                        () = self.session.something_to_hear() => true,
                    };
                    if heard {
                        self.tell_heard(wire);
                        wire.flush().await?;
                    }
                    continue;
                }
                Err(Refused::TooLong(long)) => {
                    wire.pass_over(long.bytes, self.idle()).await?;
                    (long.is_extended(), Err(long.error(self.shared.limits.max_message)))
                }
                Err(Refused::Stream(error)) => return Err(Failure::Fatal(error)),
            };
            if self.skipping && extended {
                continue;
            }
            let handled = match message {
                Ok(Message::Terminate) => return Ok(()),
                Ok(message) if large => {
                    // To split and parse a long text, to decode long values, and to give them back takes long.
                    let env = self.shared.env.clone();
                    env.run_long(Box::pin(self.handle(wire, message))).await
                }
                Ok(message) => self.handle(wire, message).await,
                Err(e) => Err(Failure::Statement(e)),
            };
            match handled {
                Ok(()) => {}
                // What was cancelled because the server stops, or its session, ends for that reason.
                Err(Failure::Statement(_)) if *self.shared.stopping.borrow() || canceller.is_terminated() => {
                    return Err(shutting_down());
                }
                Err(Failure::Statement(e)) => {
                    wire.notices(&self.session.notices().take());
                    let schema = self.session.schema_of(&e).await;
                    wire.put(Answer::ErrorResponse(error_response(&e, "ERROR", schema)));
                    self.session.fail().await;
                    if extended {
                        self.skipping = true;
                        // Clients that send Flush instead of Sync wait for it.
                        wire.flush().await?;
                    } else {
                        self.finish(wire).await?;
                    }
                }
                Err(end) => return Err(end),
            }
        }
    }

    fn idle(&self) -> Option<Idle> {
        let session = ("57P05", "idle-session timeout");
        let (limit, (state, what)) = match self.session.idle_timeout() {
            Some(("idle_session_timeout", limit)) => (limit, session),
            Some((_, limit)) => (limit, ("25P03", "idle-in-transaction timeout")),
            None => (self.shared.limits.idle_timeout?, session),
        };
        Some(Idle { limit, state, what })
    }

    /// Refuses text of statements that is longer than is allowed.
    pub(crate) fn check_length(&self, sql: &str) -> Result<(), EngineError> {
        let most = self.shared.limits.max_statement;
        if sql.len() <= most {
            return Ok(());
        }
        let message = format!("a string of statements of {} bytes is too long", sql.len());
        let hint = format!("At most {most} bytes are taken; COPY brings in data of any size.");
        Err(EngineError::new("54000", message).with_hint(hint))
    }

    async fn handle(&mut self, wire: &mut Wire, message: Message) -> Result<(), Failure> {
        match message {
            Message::Query(sql) => {
                self.query(wire, &sql).await?;
                self.finish(wire).await
            }
            Message::Sync => {
                self.skipping = false;
                self.finish(wire).await
            }
            Message::Parse { name, sql, types } => Box::pin(self.parse(wire, name, &sql, &types)).await,
            Message::Bind { portal, statement, formats, values, result_formats } => {
                self.bind(wire, portal, &statement, &formats, &values, &result_formats).await
            }
            Message::Describe(target) => self.describe(wire, target),
            Message::Execute { portal, max_rows } => self.execute(wire, &portal, max_rows).await,
            Message::Close(target) => self.close(wire, target),
            Message::Flush => wire.flush().await,
            Message::Terminate | Message::CopyLeftover | Message::CopyFail(_) => Ok(()),
        }
    }

    /// The simple protocol: statements one after the other, in one implicit transaction as far as they have no BEGIN
    /// and COMMIT of their own.
    async fn query(&mut self, wire: &mut Wire, sql: &str) -> Result<(), Failure> {
        self.session.forget("");
        self.portals.remove("");
        self.check_length(sql)?;
        if let Some((prepared, values)) = self.session.prepare_text(sql).await {
            if self.look_up(wire, &prepared, &values, None) {
                return Ok(());
            }
            let done = wire.watch(pin!(self.session.execute_text(&prepared, values))).await?;
            if let Some(outcome) = done {
                return self.tell(wire, outcome?, &prepared).await;
            }
        }
        let statements = self.session.split(sql)?;
        if statements.is_empty() {
            wire.put(Answer::EmptyQueryResponse(EmptyQueryResponse::new()));
        }
        let several = statements.len() > 1;
        for sql in statements {
            if several {
                // Also after a COMMIT among them.
                self.session.begin_message().await;
            }
            let prepared = Box::pin(self.session.prepare_to_run(&sql)).await?;
            if !prepared.parameters.is_empty() {
                return Err(EngineError::new("42P02", "there is no parameter $1").into());
            }
            wire.notices(&prepared.notices);
            self.run(wire, &prepared).await?;
        }
        Ok(())
    }

    /// Runs a look-up of one row where that can be done at once; whether it was. `described`: its columns were, and
    /// which of them go in binary.
    pub(crate) fn look_up(
        &mut self,
        wire: &mut Wire,
        prepared: &Arc<Prepared>,
        values: &[Datum],
        described: Option<&[bool]>,
    ) -> bool {
        let Some(shown) = Shown::of(prepared) else { return false };
        let (start, binary) = (wire.output.len(), described.unwrap_or(&[]));
        if described.is_none() {
            wire.output.extend_from_slice(&shown.description);
        }
        let found = self.session.look_up(prepared, values, |row| shown.row(&mut wire.output, row.values(), binary));
        let Some(rows) = found else {
            wire.output.truncate(start);
            return false;
        };
        assert!(rows <= 1, "a key names one row at most");
        let tag: &[u8] = if rows == 1 { b"C\0\0\0\x0dSELECT 1\0" } else { b"C\0\0\0\x0dSELECT 0\0" };
        wire.output.extend_from_slice(tag);
        true
    }

    /// Runs a statement of the simple protocol.
    async fn run(&mut self, wire: &mut Wire, prepared: &Arc<Prepared>) -> Result<(), Failure> {
        // Cursors and portals are one to clients.
        if let Some((name, count)) = prepared.moves()
            && self.session.status() == TxnStatus::InTransaction
            && Box::pin(self.pass_over(wire, name, count)).await?
        {
            return Ok(());
        }
        let outcome = wire.watch(pin!(self.session.execute(prepared, vec![]))).await??;
        self.tell(wire, outcome, prepared).await
    }

    /// Answers a statement of the simple protocol.
    async fn tell(&mut self, wire: &mut Wire, outcome: Outcome, prepared: &Arc<Prepared>) -> Result<(), Failure> {
        if let Some(mut rows) = self.answer(wire, outcome, prepared, |_| false).await? {
            wire.put(Answer::RowDescription(rows.description()));
            let style = self.session.style();
            let count = style.over(pin!(rows.send(wire, usize::MAX))).await?.count;
            wire.put(complete(prepared.tag(count)));
        }
        Ok(())
    }

    /// Answers a statement that returns no rows, data of a COPY included; hands back the rows of one that does.
    pub(crate) async fn answer(
        &mut self,
        wire: &mut Wire,
        outcome: Outcome,
        prepared: &Prepared,
        binary: impl Fn(usize) -> bool,
    ) -> Result<Option<Rows>, Failure> {
        match outcome {
            Outcome::Rows { schema, stream } => {
                return Ok(Some(Rows::new(&self.shared.env, schema, stream, self.session.notices(), binary)));
            }
            // Boxed, as all that is large and rare here: what handles a message is made, and so copied, for each.
            Outcome::CopyIn(copy) if copy.file().is_some() => Box::pin(copy_from_file(wire, copy)).await?,
            Outcome::CopyIn(copy) => Box::pin(copy_in(&self.shared, wire, copy)).await?,
            Outcome::CopyOut { schema, stream, format, file, progress } => {
                let style = self.session.style();
                let file = match file {
                    Some(path) => Some(CopyFile::create(path).await?),
                    None => None,
                };
                let out = CopyOut { shared: &self.shared, schema: &schema, format: &format, file, progress };
                let count = style.over(Box::pin(out.send(wire, stream))).await?;
                wire.put(complete(prepared.tag(count)));
            }
            Outcome::Command { tag, notices } => {
                wire.notices(&self.session.notices().take());
                wire.notices(&notices);
                wire.put(complete(tag));
            }
            Outcome::Empty => wire.put(Answer::EmptyQueryResponse(EmptyQueryResponse::new())),
        }
        Ok(None)
    }

    /// Puts what was said on channels that the session listens to.
    fn tell_heard(&self, wire: &mut Wire) {
        for note in self.session.heard() {
            let (channel, payload) = (note.channel.clone(), note.payload.clone());
            wire.put(Answer::NotificationResponse(NotificationResponse::new(note.pid, channel, payload)));
        }
    }

    /// Ends what Sync or a simple query ends, and says what state the session is in.
    async fn finish(&mut self, wire: &mut Wire) -> Result<(), Failure> {
        if let Err(e) = self.session.sync().await {
            let schema = self.session.schema_of(&e).await;
            wire.put(Answer::ErrorResponse(error_response(&e, "ERROR", schema)));
        }
        wire.notices(&self.session.notices().take());
        let now = self.session.reported();
        if !Arc::ptr_eq(&now, &self.told) {
            for ((name, value), _) in now.iter().zip(self.told.iter()).filter(|(now, told)| now != told) {
                wire.put(Answer::ParameterStatus(ParameterStatus::new((*name).to_owned(), value.to_string())));
            }
            self.told = now;
        }
        let status = self.session.status();
        if status == TxnStatus::Idle {
            // A portal lives no longer than its transaction.
            self.portals.clear();
            self.tell_heard(wire);
            if !self.session.has_cursors() {
                // What it keeps, prepared statements above all, has limits of its own.
                terrace_env::memory::settled();
            }
        }
        wire.put(Answer::ReadyForQuery(ReadyForQuery::new(ready_status(status))));
        wire.flush().await
    }
}

pub(crate) fn complete(tag: String) -> Answer {
    Answer::CommandComplete(CommandComplete::new(tag))
}
