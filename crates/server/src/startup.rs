//! From the first byte to the first ReadyForQuery.
use crate::auth::authenticate;
use crate::connection::{Connection, Wire, ready_status};
use crate::error::{Failure, fatal, protocol};
use crate::frontend::{Opening, next_opening};
use crate::serve::Shared;
use crate::tls::Tls;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};
use std::sync::Arc;
use terrace_engine::catalog::access::{Grant, PUBLIC, Rights, Securable, THE_DATABASE};
use terrace_engine::{Catalog, EngineError, Role};
use terrace_sql::SERVER_VERSION;
use terrace_sql::pgcatalog::DATABASE;

/// What a client wants.
pub(crate) enum Opened {
    Cancel { pid: i32, secret: i32 },
    Startup { minor: u16, parameters: Vec<(String, String)> },
}

/// Negotiates up to the packet that says what the client wants. `tls`: where it is there, those who ask for it get it.
pub(crate) async fn opening(wire: &mut Wire, tls: Option<&Tls>) -> Result<Opened, Failure> {
    loop {
        match next_opening(&mut wire.input).map_err(Failure::Fatal)? {
            None => wire.read(None).await?,
            Some(Opening::Encrypt { tls: wanted }) => {
                if !wire.input.is_empty() {
                    // Bytes sent before the answer would be trusted as if they had come encrypted.
                    return Err(Failure::Fatal(protocol("received unencrypted data after SSL request")));
                }
                match tls {
                    Some(config) if wanted && !wire.is_encrypted() => {
                        wire.output.extend_from_slice(b"S");
                        wire.flush().await?;
                        wire.encrypt(config).await?;
                    }
                    _ => {
                        wire.output.extend_from_slice(b"N");
                        wire.flush().await?;
                    }
                }
            }
            Some(Opening::Cancel { pid, secret }) => return Ok(Opened::Cancel { pid, secret }),
            Some(Opening::Startup { minor, parameters }) => return Ok(Opened::Startup { minor, parameters }),
        }
    }
}

/// Negotiates and opens a session. `None`: the connection was only there to cancel another's statement.
pub(crate) async fn start(shared: &Arc<Shared>, wire: &mut Wire) -> Result<Option<Connection>, Failure> {
    let (minor, parameters) = match opening(wire, shared.limits.tls.as_ref()).await? {
        Opened::Startup { minor, parameters } => (minor, parameters),
        Opened::Cancel { pid, secret } => {
            shared.registry.cancel(pid, secret);
            return Ok(None);
        }
    };
    let mut startup = Startup::check(parameters)?;
    if minor > 0 || !startup.options.is_empty() {
        wire.put(Answer::NegotiateProtocolVersion(NegotiateProtocolVersion::new(
            0,
            std::mem::take(&mut startup.options),
        )));
    }
    if shared.limits.tls.is_some() && !wire.is_encrypted() && !wire.peer.ip().to_canonical().is_loopback() {
        let e = EngineError::new("28000", "connections from other machines must be encrypted");
        return Err(Failure::Fatal(e.with_hint("Connect with sslmode=require, or better verify-full.")));
    }
    if !shared.limits.auth.trusts(wire.peer.ip()) {
        authenticate(shared, wire, &startup.user).await?;
    }
    let role = startup.role(&shared.db.engine.catalog())?;
    let mut session = shared.db.session(&role.name);
    let pid = session.backend_pid();
    let place = shared.registry.enter(&shared.env, shared.limits.max_connections, pid, session.canceller());
    session.set_client(wire.peer);
    let Some(place) = place else { return Err(fatal("53300", "sorry, too many clients already")) };
    for (name, value) in &startup.settings {
        session.set(name, value).map_err(Failure::Fatal)?;
    }
    wire.put(Answer::Authentication(Authentication::Ok));
    let reported = session.reported();
    let [(_, application), (_, zone), (_, dates), (_, spans)] = &*reported;
    for (name, value) in statuses([application, zone, dates, spans], &startup.client_encoding, &role) {
        wire.put(Answer::ParameterStatus(ParameterStatus::new(name.to_owned(), value.to_owned())));
    }
    wire.put(Answer::BackendKeyData(BackendKeyData::new(place.pid, SecretKey::I32(place.secret))));
    wire.put(Answer::ReadyForQuery(ReadyForQuery::new(ready_status(session.status()))));
    wire.flush().await?;
    Ok(Some(Connection::new(shared.clone(), session, place)))
}

fn statuses<'a>(
    [application, zone, dates, spans]: [&'a str; 4],
    client_encoding: &'a str,
    role: &'a Role,
) -> [(&'static str, &'a str); 13] {
    [
        ("application_name", application),
        ("client_encoding", client_encoding),
        ("DateStyle", dates),
        ("default_transaction_read_only", "off"),
        ("in_hot_standby", "off"),
        ("integer_datetimes", "on"),
        ("IntervalStyle", spans),
        ("is_superuser", if role.superuser { "on" } else { "off" }),
        ("server_encoding", "UTF8"),
        ("server_version", SERVER_VERSION),
        ("session_authorization", &role.name),
        ("standard_conforming_strings", "on"),
        ("TimeZone", zone),
    ]
}

/// A startup packet that may have a session.
struct Startup {
    user: String,
    settings: Vec<(String, String)>,
    client_encoding: String,
    /// Protocol options we do not know.
    options: Vec<String>,
}

impl Startup {
    fn check(parameters: Vec<(String, String)>) -> Result<Startup, Failure> {
        let client_encoding = "UTF8".to_owned();
        let mut startup = Startup { user: String::new(), settings: vec![], client_encoding, options: vec![] };
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
                "options" => startup.settings.extend(options(&value)?),
                _ if name.starts_with("_pq_.") => startup.options.push(name),
                _ => startup.settings.push((name, value)),
            }
        }
        let user = user.filter(|u| !u.is_empty());
        let Some(user) = user else {
            return Err(fatal("28000", "no PostgreSQL user name specified in startup packet"));
        };
        let database = database.filter(|d| !d.is_empty()).unwrap_or_else(|| user.clone());
        startup.user = user;
        if database != DATABASE {
            let mut e = EngineError::new("3D000", format!("database \"{database}\" does not exist"));
            e.hint = Some(format!("The only database is \"{DATABASE}\"."));
            return Err(Failure::Fatal(e));
        }
        Ok(startup)
    }

    /// The role that the client is, once it is believed.
    fn role(&self, catalog: &Catalog) -> Result<Role, Failure> {
        match catalog.role(&self.user) {
            Some(role) if role.login && may_connect(catalog, &role) => Ok(role),
            Some(role) if role.login => {
                let error = EngineError::new("42501", format!("permission denied for database \"{DATABASE}\""));
                Err(Failure::Fatal(error.with_detail("User does not have CONNECT privilege.")))
            }
            Some(_) => Err(fatal("28000", format!("role \"{}\" is not permitted to log in", self.user))),
            None => Err(fatal("28000", format!("role \"{}\" does not exist", self.user))),
        }
    }
}

/// Whether a role has the privilege CONNECT on the database.
fn may_connect(catalog: &Catalog, role: &Role) -> bool {
    let has = catalog.with_memberships(role.oid, true);
    let granted = |grant: &Grant| {
        grant.rights.covers(Rights::CONNECT) && (grant.grantee == PUBLIC || has.contains(&grant.grantee))
    };
    role.superuser || catalog.acl(THE_DATABASE, Securable::Database).iter().any(granted)
}

/// Settings as PostgreSQL's command line states them: `-c name=value` or `--name=value`; a backslash before what is to
/// stay in a value.
fn options(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut words: Vec<String> = vec![];
    let (mut rest, mut within) = (text.chars(), false);
    while let Some(c) = rest.next() {
        match c {
            c if c.is_whitespace() => within = false,
            c => {
                if !std::mem::replace(&mut within, true) {
                    words.push(String::new());
                }
                let c = if c == '\\' { rest.next().unwrap_or(c) } else { c };
                words.last_mut().expect("a word has begun").push(c);
            }
        }
    }
    let (mut words, mut settings) = (words.into_iter(), vec![]);
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") if word == "-c" => words.next(),
            Some(setting) => Some(setting.to_owned()),
            None => None,
        };
        match setting.as_deref().and_then(|setting| setting.split_once('=')) {
            Some((name, value)) => settings.push((name.replace('-', "_"), value.to_owned())),
            None => {
                let message = format!("the connection parameter \"options\" has \"{word}\", which is not supported");
                return Err(fatal("0A000", message));
            }
        }
    }
    Ok(settings)
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
