//! Where things are unless told otherwise.
//!
//! Root has the system's places, everybody else the ones of the XDG base
//! directories. `STERNA_SOCKET` goes before the default, a flag before both.

use std::env;
use std::path::{Path, PathBuf};

/// The environment variable that names the API's socket.
pub const SOCKET_VARIABLE: &str = "STERNA_SOCKET";

/// How long the path of a unix socket may be: what the kernel's `sun_path` has
/// room for, less the zero at its end.
const SOCKET_PATH_MAX: usize = 107;

/// Says so if the path is too long for a unix socket.
pub fn too_long(socket: &Path) -> Option<String> {
    let length = socket.as_os_str().len();
    (length > SOCKET_PATH_MAX).then(|| {
        format!(
            "the path of a unix socket may have {SOCKET_PATH_MAX} bytes, and this one \
             has {length}: {}",
            socket.display()
        )
    })
}

/// Who asks, as far as default places depend on it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The effective user id.
    pub uid: u32,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `STERNA_SOCKET`.
    pub socket: Option<PathBuf>,
}

impl Caller {
    /// This process, with its effective user id.
    pub fn from_environment(uid: u32) -> Self {
        // A relative path in an XDG variable must be ignored (the standard says).
        let directory = |name: &str| {
            env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let socket = env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty());
        Caller {
            uid,
            home: directory("HOME"),
            state_home: directory("XDG_STATE_HOME"),
            runtime_dir: directory("XDG_RUNTIME_DIR"),
            socket: socket.map(PathBuf::from),
        }
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        if self.uid == 0 {
            return PathBuf::from("/var/lib/sterna");
        }
        let home_state = || self.home.as_ref().map(|home| home.join(".local/state"));
        match self.state_home.clone().or_else(home_state) {
            Some(base) => base.join("sterna"),
            None => PathBuf::from(format!("/var/tmp/sterna-{}", self.uid)),
        }
    }

    /// The API's socket.
    pub fn socket(&self) -> PathBuf {
        match &self.socket {
            Some(path) => path.clone(),
            None => self.runtime().join("sterna.sock"),
        }
    }

    fn runtime(&self) -> PathBuf {
        if self.uid == 0 {
            return PathBuf::from("/run/sterna");
        }
        match &self.runtime_dir {
            Some(base) => base.join("sterna"),
            None => PathBuf::from(format!("/tmp/sterna-{}", self.uid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32) -> Caller {
        Caller { uid, home: None, state_home: None, runtime_dir: None, socket: None }
    }

    #[test]
    fn root_has_the_systems_places() {
        let root = Caller { runtime_dir: Some("/run/user/0".into()), ..caller(0) };
        assert_eq!(root.state(), PathBuf::from("/var/lib/sterna"));
        assert_eq!(root.socket(), PathBuf::from("/run/sterna/sterna.sock"));
    }

    #[test]
    fn others_have_the_xdg_places_with_fallbacks() {
        let bare = caller(7);
        assert_eq!(bare.state(), PathBuf::from("/var/tmp/sterna-7"));
        assert_eq!(bare.socket(), PathBuf::from("/tmp/sterna-7/sterna.sock"));
        let home = Caller { home: Some("/home/u".into()), ..caller(7) };
        assert_eq!(home.state(), PathBuf::from("/home/u/.local/state/sterna"));
        let xdg = Caller {
            state_home: Some("/s".into()),
            runtime_dir: Some("/run/user/7".into()),
            ..home
        };
        assert_eq!(xdg.state(), PathBuf::from("/s/sterna"));
        assert_eq!(xdg.socket(), PathBuf::from("/run/user/7/sterna/sterna.sock"));
    }

    #[test]
    fn the_variable_goes_before_the_default() {
        let told = Caller { socket: Some("/x.sock".into()), ..caller(0) };
        assert_eq!(told.socket(), PathBuf::from("/x.sock"));
    }
}
