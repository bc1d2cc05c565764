//! The sockets that the daemon listens on.
//!
//! They come from systemd (`LISTEN_FDS`, with `LISTEN_FDNAMES` telling `api`
//! and `nbd` apart) or are made here. A unix socket that is in the way is
//! removed only when nobody listens on it; whoever does is left alone. Sockets
//! have mode 0600: reaching them is the permission to use them.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use sterna_api::paths::too_long;
use sterna_api::{Error, Result};

/// How long a socket may outlive its daemon. The ring of a daemon that was killed
/// is taken apart by the kernel after the process is gone, and holds the sockets
/// that it waited on until then.
const LINGER: Duration = Duration::from_secs(2);
/// What to do where a path cannot be had.
const ANOTHER_PATH: &str = "choose another path (--socket, --nbd-socket, --vhost-user)";
/// How often such a socket is looked at.
const AGAIN: Duration = Duration::from_millis(50);

/// A listening socket for NBD.
#[derive(Debug)]
pub enum NbdSocket {
    /// A unix socket, at this path.
    Unix(UnixListener, PathBuf),
    /// A TCP socket.
    Tcp(TcpListener, SocketAddr),
}

/// A unix socket that removes itself, if this process made it.
#[derive(Debug)]
pub struct Bound {
    path: PathBuf,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // A socket left behind is found stale by the next daemon.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a unix socket at `path`, mode 0600, in place of one that nobody
/// listens on.
pub fn bind_unix(path: &Path) -> Result<(UnixListener, Bound)> {
    if let Some(message) = too_long(path) {
        return Err(Error::invalid(message).hint(ANOTHER_PATH));
    }
    make_directory_of(path)?;
    remove_stale(path)?;
    // Between bind and chmod the umask decides; other users' default denies
    // writing, and so connecting, and the directory is ours where we made it.
    let listener =
        UnixListener::bind(path).map_err(|error| cannot_listen(path, &error))?;
    let bound = Bound { path: path.into() };
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|error| cannot_listen(path, &error))?;
    Ok((listener, bound))
}

/// Makes a TCP socket.
pub fn bind_tcp(address: SocketAddr) -> Result<NbdSocket> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok(NbdSocket::Tcp(listener, address))
    });
    bound.map_err(|error| {
        let message = format!("cannot listen on {address}: {error}");
        Error::unavailable(message).hint("choose another address: --listen ADDR:PORT")
    })
}

fn make_directory_of(path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
    else {
        return Ok(());
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
    made.map_err(|error| cannot_listen(path, &error))
}

fn remove_stale(path: &Path) -> Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot_listen(path, &error)),
    };
    let shown = path.display();
    if kind.is_dir() {
        let message = format!("cannot listen on {shown}: that is a directory");
        return Err(Error::in_use(message).hint("give the path of a socket in it"));
    }
    if !kind.is_socket() {
        let message = format!("cannot listen on {shown}: that is not a socket");
        return Err(Error::in_use(message).hint("choose another path"));
    }
    let deadline = Instant::now() + LINGER;
    loop {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                let removed = fs::remove_file(path);
                return removed.map_err(|error| cannot_listen(path, &error));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(cannot_listen(path, &error)),
            Ok(_) if Instant::now() < deadline => thread::sleep(AGAIN),
            Ok(_) => break,
        }
    }
    let message = format!("cannot listen on {shown}: another process does");
    Err(Error::in_use(message)
        .hint("it is probably a running daemon; use that one, or choose another path"))
}

fn cannot_listen(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot listen on {}: {error}", path.display());
    Error::unavailable(message).hint(ANOTHER_PATH)
}

/// The sockets that systemd hands over.
#[derive(Debug, Default)]
pub struct Inherited {
    /// For the API.
    pub api: Option<UnixListener>,
    /// For NBD.
    pub nbd: Vec<NbdSocket>,
}

/// Takes over what systemd hands to this process; nothing if it does not.
pub fn inherited() -> Result<Inherited> {
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names: Vec<&str> = names.split(':').collect();
    let mut handed = ListenFd::from_env();
    let mut taken = Inherited::default();
    for at in 0..handed.len() {
        let name = names.get(at).copied().unwrap_or_default();
        take_over(&mut handed, at, name, &mut taken)?;
    }
    Ok(taken)
}

fn take_over(
    handed: &mut ListenFd,
    at: usize,
    name: &str,
    taken: &mut Inherited,
) -> Result<()> {
    let wrong = |what: String| {
        Error::invalid(format!("systemd's socket {} (`{name}`) {what}", at + 1))
            .hint("in the socket unit: FileDescriptorName=api or =nbd, ListenStream=")
    };
    let unusable = |error: io::Error| wrong(format!("cannot be used: {error}"));
    let gone = || wrong("is not there".into());
    // One of another kind stays where it is.
    let unix = handed.take_unix_listener(at).ok().flatten();
    match (name, unix) {
        ("api", _) if taken.api.is_some() => {
            return Err(wrong("is the second of its name".into()));
        }
        ("api", Some(unix)) => taken.api = Some(unix),
        ("api", None) => return Err(wrong("must be a unix socket".into())),
        ("nbd", Some(unix)) => {
            let address = unix.local_addr().map_err(unusable)?;
            let path =
                address.as_pathname().ok_or_else(|| wrong("has no path".into()))?;
            taken.nbd.push(NbdSocket::Unix(unix, path.to_owned()));
        }
        ("nbd", None) => {
            let tcp = handed.take_tcp_listener(at).map_err(unusable)?.ok_or_else(gone)?;
            let address = tcp.local_addr().map_err(unusable)?;
            taken.nbd.push(NbdSocket::Tcp(tcp, address));
        }
        _ => return Err(wrong("has a name that says nothing".into())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_no_socket_and_who_gives_one_learns_what_to_give() {
        let dir = tempfile::tempdir().unwrap();
        let refused = bind_unix(dir.path()).unwrap_err();
        assert!(refused.message.contains("that is a directory"), "{refused:?}");
        assert!(refused.hint.contains("a socket in it"), "{refused:?}");
        assert!(dir.path().is_dir());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/a.sock");
        let (live, bound) = bind_unix(&path).unwrap();
        assert!(bind_unix(&path).is_err());
        drop(live);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (_live, _second) = bind_unix(&path).unwrap();
        std::mem::forget(bound);
    }

    #[test]
    fn a_path_that_is_too_long_is_refused_with_the_limit() {
        let error = bind_unix(Path::new(&"/x".repeat(54))).unwrap_err();
        assert!(error.to_string().contains("107 bytes"), "{error}");
    }

    #[test]
    fn what_is_not_a_socket_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "precious").unwrap();
        assert!(bind_unix(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}
