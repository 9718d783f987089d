//! From the first byte to the first ReadyForQuery.
use crate::connection::{Connection, Wire, ready_status};
use crate::error::{Failure, fatal, protocol};
use crate::frontend::{Opening, next_opening};
use crate::serve::Shared;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_sql::pgcatalog::{DATABASE, ROLE, SERVER_VERSION};

/// Negotiates and opens a session. `None`: the connection was only there to cancel another's statement.
pub(crate) async fn start(shared: &Arc<Shared>, wire: &mut Wire) -> Result<Option<Connection>, Failure> {
    let (minor, parameters) = loop {
        match next_opening(&mut wire.input).map_err(Failure::Fatal)? {
            None => wire.read(shared, None).await?,
            Some(Opening::Encrypt) => {
                if !wire.input.is_empty() {
                    // Bytes sent before the answer would be trusted as if they had come encrypted.
                    return Err(Failure::Fatal(protocol("received unencrypted data after SSL request")));
                }
                wire.output.extend_from_slice(b"N");
                wire.flush().await?;
            }
            Some(Opening::Cancel { pid, secret }) => {
                shared.registry.cancel(pid, secret);
                return Ok(None);
            }
            Some(Opening::Startup { minor, parameters }) => break (minor, parameters),
        }
    };
    let startup = Startup::check(parameters)?;
    if minor > 0 || !startup.options.is_empty() {
        wire.put(Answer::NegotiateProtocolVersion(NegotiateProtocolVersion::new(0, startup.options)));
    }
    let mut session = shared.db.session(ROLE);
    let pid = session.backend_pid();
    let place = shared.registry.enter(&shared.env, shared.limits.max_connections, pid, session.canceller());
    if let Some(address) = wire.peer() {
        session.set_client(address);
    }
    let Some(place) = place else { return Err(fatal("53300", "sorry, too many clients already")) };
    for (name, value) in &startup.settings {
        session.set(name, value).map_err(Failure::Fatal)?;
    }
    wire.put(Answer::Authentication(Authentication::Ok));
    let application = session.setting("application_name").unwrap_or_default();
    for (name, value) in statuses(&application, &startup.client_encoding) {
        wire.put(Answer::ParameterStatus(ParameterStatus::new(name.to_owned(), value.to_owned())));
    }
    wire.put(Answer::BackendKeyData(BackendKeyData::new(place.pid, SecretKey::I32(place.secret))));
    wire.put(Answer::ReadyForQuery(ReadyForQuery::new(ready_status(session.status()))));
    wire.flush().await?;
    Ok(Some(Connection::new(shared.clone(), session, place)))
}

fn statuses<'a>(application: &'a str, client_encoding: &'a str) -> [(&'static str, &'a str); 13] {
    [
        ("application_name", application),
        ("client_encoding", client_encoding),
        ("DateStyle", "ISO, MDY"),
        ("default_transaction_read_only", "off"),
        ("in_hot_standby", "off"),
        ("integer_datetimes", "on"),
        ("IntervalStyle", "postgres"),
        ("is_superuser", "on"),
        ("server_encoding", "UTF8"),
        ("server_version", SERVER_VERSION),
        ("session_authorization", ROLE),
        ("standard_conforming_strings", "on"),
        ("TimeZone", "UTC"),
    ]
}

/// A startup packet that may have a session.
struct Startup {
    settings: Vec<(String, String)>,
    client_encoding: String,
    /// Protocol options we do not know.
    options: Vec<String>,
}

impl Startup {
    fn check(parameters: Vec<(String, String)>) -> Result<Startup, Failure> {
        let mut startup = Startup { settings: vec![], client_encoding: "UTF8".to_owned(), options: vec![] };
        let (mut user, mut database) = (None, None);
        for (name, value) in parameters {
            match name.as_str() {
                "user" => user = Some(value),
                "database" => database = Some(value),
                "client_encoding" => startup.client_encoding = encoding(&value)?,
                "replication" if !["false", "off", "0", "no"].contains(&value.as_str()) => {
                    return Err(fatal("0A000", "replication connections are not supported"));
                }
                "replication" => {}
                "options" if value.trim().is_empty() => {}
                "options" => return Err(fatal("0A000", "the connection parameter \"options\" is not supported")),
                _ if name.starts_with("_pq_.") => startup.options.push(name),
                _ => startup.settings.push((name, value)),
            }
        }
        let user = user.filter(|u| !u.is_empty());
        let Some(user) = user else {
            return Err(fatal("28000", "no PostgreSQL user name specified in startup packet"));
        };
        if user != ROLE {
            let mut e = EngineError::new("28000", format!("role \"{user}\" does not exist"));
            e.hint = Some(format!("The only role is \"{ROLE}\"."));
            return Err(Failure::Fatal(e));
        }
        let database = database.filter(|d| !d.is_empty()).unwrap_or(user);
        if database != DATABASE {
            let mut e = EngineError::new("3D000", format!("database \"{database}\" does not exist"));
            e.hint = Some(format!("The only database is \"{DATABASE}\"."));
            return Err(Failure::Fatal(e));
        }
        Ok(startup)
    }
}

/// Text is UTF-8. SQL_ASCII means "convert nothing" and is what libpq asks for in the C locale.
fn encoding(name: &str) -> Result<String, Failure> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
    match plain.as_str() {
        "UTF8" | "UNICODE" => Ok("UTF8".to_owned()),
        "SQLASCII" => Ok("SQL_ASCII".to_owned()),
        _ => Err(fatal(
            "22023",
            format!("invalid value for parameter \"client_encoding\": \"{name}\" (only UTF8 is supported)"),
        )),
    }
}
