//! What can go wrong with a store, and what to do about it.
//!
//! PostgreSQL says what happened with a code of five characters. Those that somebody
//! in front of a terminal can do something about have a case of their own.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use sterna_core::Bytes;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error};

use super::size::Size;

/// Why a store cannot be loaded, used or checked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The URI cannot be read.
    #[error("the URI cannot be read: {0}")]
    Uri(String),
    /// Nobody answers.
    #[error("no PostgreSQL server answers at {at}: {why}")]
    NoServer {
        /// Where.
        at: String,
        /// The system's or the protocol's words.
        why: String,
    },
    /// The server has no connection left.
    #[error("the server takes no more connections: {0}")]
    Crowded(String),
    /// The server does not let this user in.
    #[error("the server at {at} does not let {user} in: {why}")]
    Refused {
        /// Where.
        at: String,
        /// Who.
        user: String,
        /// The server's words.
        why: String,
    },
    /// There is no such database.
    #[error("the server at {at} has no database {name}")]
    NoDatabase {
        /// Where.
        at: String,
        /// Which.
        name: String,
    },
    /// There is no store.
    #[error("there is no store in this database")]
    NoStore,
    /// A load was not finished.
    #[error("the store in this database is not whole: its load was not finished")]
    Unfinished,
    /// There is one already.
    #[error("there is a {0} store in this database already")]
    Exists(Size),
    /// Somebody else uses the schema's name.
    #[error("the schema dvdstore in this database was made by somebody else")]
    Foreign,
    /// The store has another size.
    #[error("the store in this database is {found} ({}), not {asked}", Bytes(found.bytes()))]
    OtherSize {
        /// What is there.
        found: Size,
        /// What was asked for.
        asked: Size,
    },
    /// The tables or indexes are elsewhere.
    #[error(
        "the {what} of the store in this database are in tablespace {found}, not {asked}"
    )]
    OtherTablespace {
        /// Tables or indexes.
        what: &'static str,
        /// Where they are.
        found: String,
        /// Where they should be.
        asked: String,
    },
    /// There is no such tablespace.
    #[error("the server has no tablespace {name}; it has {there}")]
    NoTablespace {
        /// Which.
        name: String,
        /// Those that it has.
        there: String,
    },
    /// No space.
    #[error("the server's disk is full: {0}")]
    Full(String),
    /// This user may not do it.
    #[error("the server does not allow it: {0}")]
    Forbidden(String),
    /// The connection broke.
    #[error("the connection to the server is lost: {0}")]
    Lost(String),
    /// Anything else that the server said.
    #[error("the server says: {0}")]
    Server(String),
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A line of the file of acknowledged orders is none.
    #[error("{path}, line {line}: `{text}` is no order", path = path.display())]
    NoOrder {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
}

impl StoreError {
    /// What to do next; empty if nobody can know.
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::Uri(_) => {
                "begin with postgres://, as in postgres://USER@HOST:PORT/DATABASE, or with \
                 a unix socket postgres:///DATABASE?host=DIRECTORY&user=USER"
            }
            StoreError::NoServer { .. } => {
                "see that it runs and listens there: pg_isready -h HOST -p PORT"
            }
            StoreError::Crowded(_) => {
                "ask for fewer --users, or raise the server's max_connections"
            }
            StoreError::Refused { .. } => {
                "name the user in the URI, and give the password there or in \
                 PGPASSWORD; the server's pg_hba.conf says who may come from where"
            }
            StoreError::NoDatabase { .. } => "make one: createdb NAME",
            StoreError::NoStore => "it is loaded by a run: leave out --check",
            StoreError::Unfinished => "load it anew: --reload",
            StoreError::Exists(_) => "load it anew: --reload (its orders are lost then)",
            StoreError::Foreign => "give the store a database of its own: createdb NAME",
            StoreError::OtherSize { .. } | StoreError::OtherTablespace { .. } => {
                "ask for what is there, or load it anew: --reload (its orders are \
                 lost then)"
            }
            StoreError::NoTablespace { .. } => {
                "make it: CREATE TABLESPACE NAME LOCATION 'DIRECTORY'"
            }
            StoreError::Full(_) => {
                "make room, or take a smaller --size; a load that did not end is made \
                 anew with --reload"
            }
            StoreError::Forbidden(_) => {
                "the user needs CREATE on the database (and on tablespaces that are \
                 named): GRANT CREATE ON DATABASE NAME TO USER"
            }
            StoreError::Lost(_) => {
                "see whether the server still runs, and what its log says"
            }
            StoreError::Server(_) | StoreError::File { .. } => "",
            StoreError::NoOrder { .. } => "name a file that --acknowledged has written",
        }
    }
}

/// Where a server is, without the password.
pub(crate) fn place(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => format!("{name}:{port}"),
        Host::Unix(dir) => dir.join(format!(".s.PGSQL.{port}")).display().to_string(),
    });
    hosts.collect::<Vec<_>>().join(", ")
}

/// Why a connection could not be made.
pub(crate) fn not_connected(config: &Config, error: &Error) -> StoreError {
    let at = place(config);
    let user = config.get_user().unwrap_or("this user").to_owned();
    let Some(said) = error.as_db_error() else {
        let why = causes(error);
        // The only thing that a configuration can lack on its way to a server.
        return match why.contains("password missing") {
            true => {
                StoreError::Refused { at, user, why: "it asks for a password".into() }
            }
            false => StoreError::NoServer { at, why },
        };
    };
    let why = said.message().to_owned();
    match said.code() {
        code if code.code().starts_with("28") => StoreError::Refused { at, user, why },
        &SqlState::TOO_MANY_CONNECTIONS => StoreError::Crowded(why),
        &SqlState::INVALID_CATALOG_NAME => {
            let name = config.get_dbname().unwrap_or(&user).to_owned();
            StoreError::NoDatabase { at, name }
        }
        _ => StoreError::NoServer { at, why },
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(said) = error.as_db_error() else {
            return StoreError::Lost(chain(&error));
        };
        let message = said.message().to_owned();
        match said.code() {
            &SqlState::DISK_FULL => StoreError::Full(message),
            &SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Forbidden(message),
            code if is_end(code) => StoreError::Lost(message),
            _ => StoreError::Server(message),
        }
    }
}

/// Whether a server that says so ends the connection.
fn is_end(code: &SqlState) -> bool {
    ["57P", "08"].iter().any(|class| code.code().starts_with(class))
}

/// Short, and the same for all errors of a kind: what they are counted by.
pub(crate) fn kind(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => said.code().code().to_owned(),
        None => "connection".into(),
    }
}

/// What the server said, or an error and its causes in one line.
pub(crate) fn chain(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => said.message().to_owned(),
        (None, Some(_)) => format!("{error}: {}", causes(error)),
        (None, None) => error.to_string(),
    }
}

/// The causes of an error; itself, if it has none.
pub(crate) fn causes(error: &Error) -> String {
    let mut texts = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_without_the_password() {
        let config: Config = "postgres://me:secret@db.example:5433/shop".parse().unwrap();
        assert_eq!(place(&config), "db.example:5433");
        let config: Config = "postgres:///shop?host=/run/pg&user=me".parse().unwrap();
        assert_eq!(place(&config), "/run/pg/.s.PGSQL.5432");
    }
}
