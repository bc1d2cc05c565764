//! Somebody between Sterna and QEMU's monitor, who stops what is said at a word.
//!
//! So a daemon is killed at exactly one moment: right before QEMU is told something, or
//! right after, with QEMU having done it and the daemon not knowing.

use std::io::{self, BufRead, BufReader, Read, Write};
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
    /// QEMU is told, and its answers are not passed on.
    After,
    /// QEMU is not told this one thing, and all is said to be well.
    Lost,
}

#[derive(Debug, Default)]
struct State {
    /// The command, and when.
    at: Option<(&'static str, Stop)>,
    reached: bool,
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

/// Passes on what both say, until either is gone.
fn pass(client: &UnixStream, qemu: &UnixStream, state: &Arc<Mutex<State>>) {
    let clone = |stream: &UnixStream| stream.try_clone().expect("clone a socket");
    let stopped = Arc::new(Mutex::new(false));
    let (mut answers, mut to_client) = (clone(qemu), clone(client));
    let is_stopped = stopped.clone();
    let back = thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = answers.read(&mut bytes) {
            if !*is_stopped.lock().expect("not poisoned") {
                let _ = to_client.write_all(&bytes[..count]);
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut to_qemu = clone(qemu);
    for line in BufReader::new(clone(client)).lines().map_while(Result::ok) {
        let mut stopped = stopped.lock().expect("not poisoned");
        if *stopped {
            continue;
        }
        let mut state = state.lock().expect("not poisoned");
        let said = state.at.filter(|(command, _)| line.contains(command));
        if let Some((_, when)) = said {
            (state.at, state.reached, *stopped) = (None, true, when != Stop::Lost);
            match when {
                Stop::Before => continue,
                Stop::Lost => {
                    let _ = answer(client, &line);
                    continue;
                }
                Stop::After => {}
            }
        }
        let _ = to_qemu.write_all(format!("{line}\n").as_bytes());
    }
    let _ = qemu.shutdown(Shutdown::Both);
    let _ = back.join();
}
