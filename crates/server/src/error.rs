//! Errors: what ends a statement, what ends a connection, and how a client reads them.
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use terrace_engine::EngineError;

/// What went wrong while a message was handled.
pub(crate) enum Failure {
    /// The statement failed; the connection goes on.
    Statement(EngineError),
    /// The client is told, then the connection ends.
    Fatal(EngineError),
    /// The client is gone.
    Gone,
}

impl From<EngineError> for Failure {
    fn from(e: EngineError) -> Failure {
        Failure::Statement(e)
    }
}

impl From<std::io::Error> for Failure {
    fn from(_: std::io::Error) -> Failure {
        Failure::Gone
    }
}

pub(crate) fn protocol(message: impl Into<String>) -> EngineError {
    EngineError::new("08P01", message)
}

pub(crate) fn fatal(state: &'static str, message: impl Into<String>) -> Failure {
    Failure::Fatal(EngineError::new(state, message))
}

/// `schema`: of the table that it is about.
pub(crate) fn error_response(e: &EngineError, severity: &str, schema: Option<String>) -> ErrorResponse {
    ErrorResponse::new(fields(e, severity, schema))
}

/// A warning, or (successful completion's states, and what is there already) a notice.
pub(crate) fn notice_response(e: &EngineError) -> NoticeResponse {
    let is_notice = e.state.0.starts_with("00") || matches!(e.state.0, "42P06" | "42P07" | "42622" | "42710");
    let severity = if is_notice { "NOTICE" } else { "WARNING" };
    NoticeResponse::new(fields(e, severity, None))
}

fn fields(e: &EngineError, severity: &str, schema: Option<String>) -> Vec<(u8, String)> {
    // A NUL would end the field early.
    let clean = |s: &str| s.replace('\0', "\u{fffd}");
    let mut fields = vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', e.state.0.to_owned()),
        (b'M', clean(&e.message)),
    ];
    // By its name drivers (pgjdbc, asyncpg) know that they have to prepare the statement again.
    let replan = e.message == "cached plan must not change result type";
    let routine = replan.then(|| "RevalidateCachedQuery".to_owned());
    let position = e.position.map(|position| position.to_string());
    let optional = [
        (b'D', &e.detail),
        (b'H', &e.hint),
        (b'P', &position),
        (b'W', &e.context),
        (b's', &schema),
        (b't', &e.table),
        (b'c', &e.column),
        (b'n', &e.constraint),
        (b'R', &routine),
    ];
    fields.extend(optional.into_iter().filter_map(|(code, value)| Some((code, clean(value.as_deref()?)))));
    fields
}
