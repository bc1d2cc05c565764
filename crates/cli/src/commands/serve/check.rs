//! `sterna serve --check`: whether the daemon could start, as far as that is to be seen
//! without starting it. Nothing is made, opened for writing or removed.
//!
//! A daemon that runs is nothing wrong: before it is started anew is when people check.
//! So nobody looks whether a lock, a socket or a port is free.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, access};
use sterna_api::paths::too_long;
use sterna_api::{Error, ErrorCode};
use sterna_console::connect::Failure;
use sterna_console::output::Output;
use sterna_console::table::Pairs;
use sterna_daemon::{check_start, within};

use super::options::Resolved;

/// How long a file system may take to answer. A slow one takes less.
const PATIENCE: Duration = Duration::from_secs(5);

/// Says that all is well, or fails with everything that is not.
pub(super) fn run(resolved: &Resolved, output: Output) -> anyhow::Result<()> {
    let mut problems = problems(resolved);
    let (scarce, refused) = match check_start() {
        Ok(scarce) => (scarce, None),
        Err(error) => (None, Some(error)),
    };
    problems.extend(of_limits(refused));
    if problems.is_empty() {
        return output.answer(resolved, |resolved| {
            let scarce = scarce.map(|warning| format!("Warning: {warning}."));
            format!("{}{}", words(resolved, output), scarce.unwrap_or_default())
        });
    }
    let failure = Failure {
        code: ErrorCode::Invalid,
        message: problems.join("\n"),
        hint: "nothing was started or changed".into(),
    };
    Err(failure.into())
}

fn words(resolved: &Resolved, output: Output) -> String {
    let mut pairs = Pairs::default();
    let path = |path: &Path| path.display().to_string();
    pairs.add("file", resolved.config.as_deref().map_or("none".into(), path));
    pairs.add("state", path(&resolved.state));
    pairs.add("API", path(&resolved.socket));
    pairs.add("NBD", path(&resolved.nbd_socket));
    for address in &resolved.listen {
        pairs.add("NBD over TCP", address.to_string());
    }
    pairs.maybe("dashboard", resolved.dashboard.map(|address| address.to_string()));
    format!("The configuration is good.\n{}", output.pairs_below(&pairs))
}

/// All that would keep the daemon from starting.
fn problems(resolved: &Resolved) -> Vec<String> {
    let Resolved { config: _, state, socket, nbd_socket, listen, io: _, dashboard: _ } =
        resolved;
    let mut problems = Vec::new();
    let seen = [
        ("state", state, of_directory as fn(&Path) -> Option<String>),
        ("socket", socket, of_socket),
        ("nbd-socket", nbd_socket, of_socket),
    ];
    for (option, path, look) in seen {
        problems.extend(in_time(path, look).map(|what| format!("{option}: {what}")));
    }
    if socket == nbd_socket {
        let shown = socket.display();
        problems.push(format!("nbd-socket: {shown} is the API's socket already"));
    }
    for (at, address) in listen.iter().enumerate() {
        if listen[..at].contains(address) {
            problems.push(format!("listen: {address} is given twice"));
        }
        // Any port of it: the daemon's own may be in use, by the daemon.
        if let Err(error) = TcpListener::bind((address.ip(), 0)) {
            problems.push(format!("listen: {address} cannot be listened on: {error}"));
        }
    }
    problems
}

/// What of the system is not enough for a start.
fn of_limits(refused: Option<Error>) -> Option<String> {
    refused.map(|error| format!("limits here: {error}; {}", error.hint))
}

/// What a look at a path finds wrong, if the path's file system answers.
fn in_time(path: &Path, look: fn(&Path) -> Option<String>) -> Option<String> {
    let seen = path.to_path_buf();
    within(PATIENCE, move || look(&seen)).unwrap_or_else(|| {
        Some(format!(
            "the file system of {} has not answered for {} s; see the kernel's log",
            path.display(),
            PATIENCE.as_secs()
        ))
    })
}

/// Why the daemon could not use, or make, this directory.
fn of_directory(path: &Path) -> Option<String> {
    // Somebody is above everything: the root directory is there.
    for place in path.ancestors() {
        let shown = place.display();
        return match fs::metadata(place) {
            Ok(it) if !it.is_dir() => Some(format!("{shown} is not a directory")),
            Ok(_) => {
                access(place, Access::WRITE_OK | Access::EXEC_OK).err().map(|error| {
                    format!("the directory {shown} cannot be written to: {error}")
                })
            }
            // What a link leads to is not made.
            Err(error) if error.kind() == ErrorKind::NotFound && !place.is_symlink() => {
                continue;
            }
            Err(error) => Some(format!("{shown} cannot be checked: {error}")),
        };
    }
    None
}

/// Why the daemon could not listen there.
fn of_socket(path: &Path) -> Option<String> {
    if let Some(what) = too_long(path) {
        return Some(what);
    }
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_dir() => Some(format!(
            "{} is a directory: give the path of a socket in it",
            path.display()
        )),
        Ok(it) if !it.file_type().is_socket() => {
            Some(format!("{} exists, and is not a socket", path.display()))
        }
        _ => of_directory(path.parent()?),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::options::IoArg;
    use super::*;

    fn good(dir: &Path) -> Resolved {
        Resolved {
            config: None,
            state: dir.join("to/be/made"),
            socket: dir.join("run/api.sock"),
            nbd_socket: dir.join("run/nbd.sock"),
            listen: vec!["127.0.0.1:10809".parse().expect("an address")],
            dashboard: None,
            io: IoArg::Auto,
        }
    }

    #[track_caller]
    fn none_but(resolved: &Resolved, expected: &[&str]) {
        let problems = problems(resolved);
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.contains(expected), "{problem} should say {expected}");
        }
    }

    #[test]
    fn what_can_be_made_is_good_and_is_not_made() {
        let dir = tempfile::tempdir().expect("a directory");
        none_but(&good(dir.path()), &[]);
        let left = fs::read_dir(dir.path()).expect("read it").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn a_socket_that_a_daemon_listens_on_is_good() {
        let dir = tempfile::tempdir().expect("a directory");
        let resolved = good(dir.path());
        fs::create_dir(dir.path().join("run")).expect("make a directory");
        let _daemon = std::os::unix::net::UnixListener::bind(&resolved.socket);
        none_but(&resolved, &[]);
    }

    #[test]
    fn all_that_is_in_the_way_is_said_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        fs::write(&file, "").expect("write a file");
        let long = PathBuf::from(format!("/{}", "long/".repeat(30)));
        let resolved = Resolved {
            state: file.join("state"),
            socket: file.clone(),
            nbd_socket: long,
            // For documentation, and so on no machine.
            listen: vec!["192.0.2.1:10809".parse().expect("an address"); 2],
            ..good(dir.path())
        };
        none_but(
            &resolved,
            &[
                // Of a path below a file the system says that it is no directory.
                "state: ",
                "socket: ",
                "nbd-socket: the path of a unix socket may have 107 bytes",
                "192.0.2.1:10809 cannot be listened on",
                "192.0.2.1:10809 is given twice",
                "192.0.2.1:10809 cannot be listened on",
            ],
        );
    }

    #[test]
    fn a_start_that_a_limit_would_refuse_is_a_problem_with_what_to_do() {
        let refused = Error::unavailable("the daemon needs 32 threads").hint("raise it");
        let said = of_limits(Some(refused)).unwrap_or_default();
        assert_eq!(said, "limits here: the daemon needs 32 threads; raise it");
        assert_eq!(of_limits(None), None);
    }

    #[test]
    fn both_sockets_cannot_be_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut resolved = good(dir.path());
        resolved.nbd_socket = resolved.socket.clone();
        none_but(&resolved, &["is the API's socket already"]);
    }
}
