//! Reaching the daemon, and explaining what went wrong.

use std::future::Future;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context;
use sterna_api::paths::{Caller, too_long};
use sterna_api::{Client, ClientError, Error, ErrorCode, SILENT, Waits};

use crate::output::{Output, note, takes_colour};

/// What a person sees of a call that takes long.
const WAITING: &str =
    "waiting for the daemon, which may be waiting for a VM or for storage ...";

/// What takes a line of the screen back.
const CLEARED: &str = "\r\x1b[K";

/// The way to the daemon.
#[derive(Debug)]
pub struct Link {
    client: Client,
}

/// A failure that says itself what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of trouble it is.
    pub code: ErrorCode,
    /// What happened, and to what.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// A failure that has been told already.
#[derive(Debug, thiserror::Error)]
#[error("it has been told")]
pub struct Said;

impl Link {
    /// The daemon on this socket, or on the one that this user's daemon has.
    pub fn new(socket: Option<PathBuf>, output: Output) -> Self {
        let socket = socket.unwrap_or_else(|| caller().socket());
        let client = Client::new(socket).for_command(command_line());
        let client = client.that_tells(say_waiting);
        Link { client: if output.is_json() { client } else { client.for_people() } }
    }

    /// The same, which says nothing by itself: for who draws all of the screen.
    pub fn silent(&self) -> Self {
        Link { client: Client::new(self.client.socket()).for_people() }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Carries out what asks the daemon.
    pub fn ask<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        block_on(work(&self.client))
    }
}

/// The longest command line that the daemon is told, in bytes.
const LINE_MOST: usize = 500;

/// What was typed, as far as the daemon is told: without where the program and the daemon's
/// socket are.
fn command_line() -> String {
    let words = std::env::args().skip(1);
    let quoted = words.map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=%@,+".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    let mut line = "sterna".to_owned();
    for word in quoted {
        line.push(' ');
        line.push_str(&word);
    }
    let end = line.char_indices().map(|(at, _)| at).nth(LINE_MOST);
    line.truncate(end.unwrap_or(line.len()));
    line
}

/// Says that the daemon has not answered yet. On a screen the command says so at once, and
/// clears the line when the answer comes. After [`SILENT`] it writes a line to stderr, once,
/// because one command may ask the daemon many times.
fn say_waiting(socket: &Path, waits: Waits) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Nobody is worse off without it.
    let on_screen = |text: &str| {
        let mut stderr = io::stderr();
        let _ = takes_colour(&stderr).then(|| write!(stderr, "{text}"));
    };
    match waits {
        Waits::Begun => on_screen(WAITING),
        Waits::Over => on_screen(CLEARED),
        Waits::Silent if SAID.swap(true, Relaxed) => {}
        Waits::Silent => {
            on_screen(CLEARED);
            note(&format!(
                "sterna: the daemon at {} has not answered for {} s; still waiting (Ctrl-C \
                 ends it)",
                socket.display(),
                SILENT.as_secs()
            ));
        }
    }
}

/// Who runs this.
pub fn caller() -> Caller {
    // A process's entry in /proc belongs to its effective user.
    let user = std::fs::metadata("/proc/self").map_or(u32::MAX, |entry| entry.uid());
    Caller::from_environment(user)
}

/// Runs what waits for something.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime =
        builder.enable_all().build().context("cannot start the async runtime")?;
    runtime.block_on(work)
}

/// What went wrong, in the API's form: message and hint.
pub fn explain(error: &anyhow::Error) -> Error {
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return explain_client(error);
    }
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.clone();
    }
    match error.downcast_ref::<Failure>() {
        Some(Failure { code, message, hint }) => {
            Error { code: *code, message: message.clone(), hint: hint.clone() }
        }
        None => Error {
            code: ErrorCode::Internal,
            message: format!("{error:#}"),
            hint: String::new(),
        },
    }
}

fn explain_client(error: &ClientError) -> Error {
    let body = |code, hint: String| Error { code, message: chain(error), hint };
    if let ClientError::NoDaemon { socket, .. } = error
        && let Some(message) = too_long(socket)
    {
        let hint = "give a shorter path with --socket or STERNA_SOCKET".into();
        return Error { code: ErrorCode::Invalid, message, hint };
    }
    if let ClientError::NoDaemon { socket, .. } = error
        && socket.is_dir()
    {
        let message = format!("{} is a directory, and no socket", socket.display());
        let meant = socket.join("sterna.sock");
        let hint = format!("give the daemon's socket: --socket {}", meant.display());
        return Error { code: ErrorCode::Invalid, message, hint };
    }
    match error {
        ClientError::Refused(body) => body.clone(),
        ClientError::NoDaemon { .. } => {
            body(ErrorCode::Unavailable, no_daemon_hint(&caller()))
        }
        ClientError::Forbidden { .. } => body(
            ErrorCode::Unavailable,
            "use the user that runs the daemon (often root: sudo)".into(),
        ),
        ClientError::Broken(_) => body(
            ErrorCode::Unavailable,
            "check that the daemon runs (`sterna status`), and read its log; the daemon \
             may have carried out the request"
                .into(),
        ),
        ClientError::NotUnderstood { .. } => body(
            ErrorCode::Internal,
            "check that client and daemon have the same version: `sterna --version`, \
             `sterna status`"
                .into(),
        ),
    }
}

/// What to do if no daemon answers. Users other than root have another socket than the
/// package's daemon, so their daemon may be there all the time.
fn no_daemon_hint(caller: &Caller) -> String {
    let start = match caller.uid {
        0 => "start the daemon",
        _ => {
            "if the daemon runs as root, as with the package, run the command as root \
             (sudo); else start it"
        }
    };
    format!(
        "{start}: `systemctl start sterna`, or `sterna serve`; if it uses another socket, \
         give the path with --socket or STERNA_SOCKET"
    )
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_with_too_long_a_path_is_not_a_missing_daemon() {
        let path = format!("/{}", "long/".repeat(30));
        let link = Link::new(Some(path.into()), Output::new(false));
        let error = link.ask(async |client| Ok(client.status().await?)).unwrap_err();
        let body = explain(&error);
        assert!(body.message.contains("107"), "{body:?}");
        assert!(!body.hint.contains("sterna serve"), "{body:?}");
    }

    #[test]
    fn other_users_hear_that_the_daemon_may_be_roots() {
        let hint = |uid| no_daemon_hint(&Caller { uid, ..Caller::from_environment(0) });
        assert!(!hint(0).contains("sudo"));
        let before = |hint: String| hint.find("sudo") < hint.find("sterna serve");
        assert!(hint(1000).contains("sudo") && before(hint(1000)));
    }
}
