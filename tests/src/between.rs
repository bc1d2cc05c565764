//! Somebody between Sterna and QEMU's monitor, who stops what is said at a word.
//!
//! So a daemon is killed at exactly one moment: right before QEMU is told something, or
//! right after, with QEMU having done it and the daemon not knowing.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// When what is said is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// QEMU is not told.
    Before,
    /// QEMU is told and does it, and its answers are not passed on.
    After,
    /// QEMU is not told this one thing, and all is said to be well.
    Lost,
    /// QEMU is told and does it; the connection ends, and who comes then is not greeted.
    Cut,
    /// QEMU is told when the job that it is about has ended, because it was given up.
    TooLate,
}

#[derive(Debug, Default)]
struct State {
    /// The command, and when.
    at: Option<(&'static str, Stop)>,
    reached: bool,
    /// Nobody is let in.
    shut: bool,
}

/// What is known of a connection.
#[derive(Debug, Default)]
struct Connection {
    /// Nothing is passed on any more.
    stopped: bool,
    /// QEMU has said something since.
    answered: bool,
    /// QEMU has said of a job that it has ended.
    concluded: bool,
}

/// A QMP socket that leads to another one.
pub struct Between {
    socket: PathBuf,
    state: Arc<Mutex<State>>,
}

impl Between {
    /// Opens it.
    #[track_caller]
    pub fn start(scratch: &Scratch, name: &str, to: &Path) -> Between {
        let socket = scratch.socket(&format!("{name}.between"));
        let listener = UnixListener::bind(&socket).expect("listen");
        let state: Arc<Mutex<State>> = Arc::default();
        let (shared, to) = (state.clone(), to.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                until("somebody to be let in", seconds(60), || {
                    (!shared.lock().expect("not poisoned").shut).then_some(())
                });
                let Ok(qemu) = UnixStream::connect(&to) else { return };
                pass(&client, &qemu, &shared);
            }
        });
        Between { socket, state }
    }

    /// Where it is.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What is said from this command on is stopped, until the connection ends; with
    /// [`Stop::Lost`] only this.
    pub fn stop_at(&self, command: &'static str, when: Stop) {
        self.state.lock().expect("not poisoned").at = Some((command, when));
    }

    /// Who was not greeted is now, and so are others.
    pub fn let_in(&self) {
        self.state.lock().expect("not poisoned").shut = false;
    }

    /// Waits until it was said; later connections are not stopped.
    #[track_caller]
    pub fn reached(&self) {
        until("the command to be sent", seconds(60), || {
            self.state.lock().expect("not poisoned").reached.then_some(())
        });
    }
}

/// Answers a command as QEMU would that has carried it out.
fn answer(mut client: &UnixStream, line: &str) -> io::Result<()> {
    let command: Value = serde_json::from_str(line)?;
    let answer = json!({ "return": {}, "id": command["id"] });
    client.write_all(format!("{answer}\n").as_bytes())
}

/// Has QEMU give up the job that a command is about, and waits for its end.
fn end_job(mut qemu: &UnixStream, line: &str, connection: &Mutex<Connection>) {
    let command: Value = serde_json::from_str(line).expect("a command");
    let id = &command["arguments"]["device"];
    let cancel = json!({ "execute": "job-cancel", "arguments": { "id": id } });
    let _ = qemu.write_all(format!("{cancel}\n").as_bytes());
    until("the job to end", seconds(20), || {
        connection.lock().expect("not poisoned").concluded.then_some(())
    });
}

/// Passes on what QEMU says, until it is gone.
fn pass_back(qemu: &UnixStream, mut client: &UnixStream, connection: &Mutex<Connection>) {
    for line in BufReader::new(qemu).lines().map_while(Result::ok) {
        let mut connection = connection.lock().expect("not poisoned");
        connection.concluded |= line.contains("concluded");
        if connection.stopped {
            connection.answered |= line.contains("return");
        } else {
            let _ = client.write_all(format!("{line}\n").as_bytes());
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// Passes on what both say, until either is gone.
fn pass(client: &UnixStream, qemu: &UnixStream, state: &Mutex<State>) {
    let clone = |stream: &UnixStream| stream.try_clone().expect("clone a socket");
    let connection: Arc<Mutex<Connection>> = Arc::default();
    let (answers, to_client, shared) = (clone(qemu), clone(client), connection.clone());
    let back = thread::spawn(move || pass_back(&answers, &to_client, &shared));
    let mut to_qemu = clone(qemu);
    for line in BufReader::new(client).lines().map_while(Result::ok) {
        if connection.lock().expect("not poisoned").stopped {
            continue;
        }
        let mut found = state.lock().expect("not poisoned");
        let said = found.at.filter(|(command, _)| line.contains(command));
        let when = said.map(|(_, when)| when);
        if let Some(when) = when {
            (found.at, found.shut) = (None, when == Stop::Cut);
            // QEMU forgets what it has not begun when a connection ends.
            found.reached = !matches!(when, Stop::After);
            let stopped = !matches!(when, Stop::Lost | Stop::TooLate);
            connection.lock().expect("not poisoned").stopped = stopped;
        }
        drop(found);
        match when {
            Some(Stop::Before) => continue,
            Some(Stop::Lost) => {
                let _ = answer(client, &line);
                continue;
            }
            Some(Stop::TooLate) => end_job(qemu, &line, &connection),
            Some(Stop::After | Stop::Cut) | None => {}
        }
        let _ = to_qemu.write_all(format!("{line}\n").as_bytes());
        if matches!(when, Some(Stop::After | Stop::Cut)) {
            until("QEMU to have done it", seconds(20), || {
                connection.lock().expect("not poisoned").answered.then_some(())
            });
            state.lock().expect("not poisoned").reached = true;
        }
        if when == Some(Stop::Cut) {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = qemu.shutdown(Shutdown::Both);
    let _ = back.join();
}
