//! Where a command finds a server: `HOST:PORT`, a URL, or `key=value` words.
//!
//! Passwords are never shown: errors and headings name host, port and user.
use crate::Failure;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// User and database, where nothing is said of them.
const NAME: &str = "terrace";

/// Reads an address; a password that it does not name comes from the environment (`PGPASSWORD`). TLS is not spoken.
pub(crate) fn named(address: &str, application: &str) -> Result<Config, Failure> {
    parse(address, std::env::var("PGPASSWORD").ok(), application)
}

fn parse(address: &str, password: Option<String>, application: &str) -> Result<Config, Failure> {
    let url = match address.contains("://") || address.contains('=') {
        true => address.to_string(),
        false => format!("postgres://{address}"),
    };
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
        Failure::Message(format!("--connect: {error}{cause}; write HOST:PORT or postgres://USER@HOST:PORT/terrace"))
    })?;
    if config.get_user().is_none() {
        config.user(NAME);
    }
    if config.get_dbname().is_none() {
        config.dbname(NAME);
    }
    if config.get_application_name().is_none() {
        config.application_name(application);
    }
    if let (None, Some(password)) = (config.get_password(), password) {
        config.password(password);
    }
    Ok(config)
}

/// As people may read it.
pub(crate) fn shown(config: &Config) -> String {
    let host = config.get_hosts().first().map_or("localhost".into(), |host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let port = config.get_ports().first().map_or(String::new(), |port| format!(":{port}"));
    format!("{}@{host}{port}", config.get_user().unwrap_or_default())
}

/// What went wrong, with its cause.
pub(crate) fn refused(config: &Config, error: &tokio_postgres::Error) -> Failure {
    let cause = match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(problem), _) => problem.to_string(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    };
    Failure::Message(format!("cannot connect to {}: {cause}", shown(config)))
}

#[cfg(test)]
mod tests;
