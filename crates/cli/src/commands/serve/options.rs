//! What the daemon can be told, and who has the last word.
//!
//! There is one definition of the options: the flags of `sterna serve`. The file takes
//! the same, by the same names ([`super::file`]); whatever a flag refuses, it refuses.
//!
//! A flag goes before the environment, that before the file, and the file before what
//! holds for this user by default.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Parser, ValueEnum};
use serde::Serialize;
use sterna_api::paths::Caller;
use sterna_daemon::IoChoice;

use super::file;
use crate::common::SocketArg;

/// Where root's daemon looks for its file.
const FILE: &str = "/etc/sterna/sterna.toml";

/// What the daemon needs to know.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A file with these options, in TOML; flags go before it [default:
    /// /etc/sterna/sterna.toml for root, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Only check whether the daemon could start with these options
    #[arg(long)]
    pub(super) check: bool,
    #[command(flatten)]
    options: Options,
    /// It belongs to an experiment: it ends when its stdin does, and removes DIR then
    #[arg(long, value_name = "DIR", hide = true)]
    pub(super) experiment: Vec<PathBuf>,
}

/// The options that a file can have as well.
#[derive(Debug, Default, Args)]
pub(super) struct Options {
    /// The state directory [default: /var/lib/sterna for root, else
    /// $XDG_STATE_HOME/sterna]
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// Also serve NBD over TCP, without login or encryption: choose a trusted network
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    pub(super) listen: Vec<SocketAddr>,
    /// The unix socket for NBD [default: nbd.sock beside the API socket]
    #[arg(long, value_name = "PATH")]
    pub(super) nbd_socket: Option<PathBuf>,
    /// The method of I/O [default: auto]
    #[arg(long, value_enum)]
    pub(super) io: Option<IoArg>,
    /// The dashboard's address, of this host only [default: a free port, once `sterna
    /// dashboard` asks for a link]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_loopback)]
    pub(super) dashboard: Option<SocketAddr>,
}

/// What a file can say: the options of `sterna serve`, and the API's socket, which is an
/// option of all commands.
#[derive(Debug, Default, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(super) struct Said {
    #[command(flatten)]
    pub(super) socket: SocketArg,
    #[command(flatten)]
    pub(super) options: Options,
}

/// Reads where to listen. A name may mean several addresses, or others tomorrow.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "give an IP address and a port (127.0.0.1:10809 or [::1]:10809)".into()
    })
}

/// Reads where the dashboard listens. There is no encryption, so nobody from elsewhere may
/// come.
fn parse_loopback(text: &str) -> Result<SocketAddr, String> {
    let address = parse_address(text)?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!(
            "{} is no address of this host alone: give 127.0.0.1:PORT or [::1]:PORT; from \
             another host, come through ssh -L",
            address.ip()
        )),
    }
}

/// How to do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
pub(super) enum IoArg {
    /// io_uring if the kernel permits it, else threads
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// io_uring, or fail
    #[value(name = "io_uring")]
    #[serde(rename = "io_uring")]
    Uring,
    /// A pool of threads
    #[serde(rename = "threads")]
    Threads,
}

impl From<IoArg> for IoChoice {
    fn from(arg: IoArg) -> Self {
        match arg {
            IoArg::Auto => IoChoice::Auto,
            IoArg::Uring => IoChoice::Uring,
            IoArg::Threads => IoChoice::Threads,
        }
    }
}

/// What holds in the end.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Resolved {
    /// The file that was read.
    pub(super) config: Option<PathBuf>,
    /// The state directory.
    pub(super) state: PathBuf,
    /// The API's socket.
    pub(super) socket: PathBuf,
    /// The unix socket for NBD.
    pub(super) nbd_socket: PathBuf,
    /// TCP addresses for NBD.
    pub(super) listen: Vec<SocketAddr>,
    /// How to do I/O.
    pub(super) io: IoArg,
    /// The dashboard's address.
    pub(super) dashboard: Option<SocketAddr>,
}

impl ServeArgs {
    /// The file to read, and whether it must be there. An experiment is no service of this
    /// machine: it has what its command line says.
    fn file(&self, caller: &Caller) -> Option<(&Path, bool)> {
        match &self.config {
            Some(file) => Some((file, true)),
            None if caller.uid == 0 && self.experiment.is_empty() => {
                Some((Path::new(FILE), false))
            }
            None => None,
        }
    }

    /// What holds: by the flags, the environment, the file, or by default.
    pub(super) fn resolve(
        self,
        socket: SocketArg,
        caller: &Caller,
    ) -> anyhow::Result<Resolved> {
        let read = match self.file(caller) {
            Some((path, needed)) => file::read(path, needed)?.map(|said| (path, said)),
            None => None,
        };
        let config = read.as_ref().map(|(path, _)| path.to_path_buf());
        let said = read.map(|(_, said)| said).unwrap_or_default();
        // Whoever adds an option meets the compiler here.
        let Options { state, listen, nbd_socket, io, dashboard } = self.options;
        let Said { socket: said_socket, options: said } = said;
        let socket = socket.socket.or_else(|| caller.socket.clone());
        let socket = socket.or(said_socket.socket).unwrap_or_else(|| caller.socket());
        let beside = || socket.with_file_name("nbd.sock");
        let nbd_socket = nbd_socket.or(said.nbd_socket).unwrap_or_else(beside);
        let state = state.or(said.state).unwrap_or_else(|| caller.state());
        // What others are told (an export's URI) must hold wherever they are.
        let absolute = std::path::absolute::<PathBuf>;
        Ok(Resolved {
            config,
            state: absolute(state).context("cannot find the state directory")?,
            nbd_socket: absolute(nbd_socket).context("cannot find the NBD socket")?,
            socket: absolute(socket).context("cannot find the API socket")?,
            listen: if listen.is_empty() { said.listen } else { listen },
            io: io.or(said.io).unwrap_or_default(),
            dashboard: dashboard.or(said.dashboard),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};

    fn resolved(line: &str, caller: &Caller) -> anyhow::Result<Resolved> {
        let cli = Cli::try_parse_from(line.split_whitespace())?;
        let Command::Serve(args) = cli.command else { panic!("`{line}` serves nothing") };
        args.resolve(cli.socket, caller)
    }

    fn caller() -> Caller {
        let home = Some("/home/u".into());
        Caller { uid: 7, home, state_home: None, runtime_dir: None, socket: None }
    }

    /// A file that lasts as long as it is held.
    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("write it");
        file
    }

    const ALL: &str = "state = \"/f\"\nsocket = '/f.sock'\nnbd-socket = '/f.nbd'\n\
                       listen = ['127.0.0.1:1', '[::1]:2']\nio = 'threads'\n\
                       dashboard = '127.0.0.1:3'\n";

    #[test]
    fn a_file_goes_before_the_defaults() {
        let file = file(ALL);
        let line = format!("sterna serve --config {}", file.path().display());
        let expected = Resolved {
            config: Some(file.path().into()),
            state: "/f".into(),
            socket: "/f.sock".into(),
            nbd_socket: "/f.nbd".into(),
            listen: vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()],
            io: IoArg::Threads,
            dashboard: Some("127.0.0.1:3".parse().unwrap()),
        };
        assert_eq!(resolved(&line, &caller()).unwrap(), expected);
    }

    #[test]
    fn flags_go_before_the_file_and_so_does_the_environment() {
        let file = file(ALL);
        let line = format!("sterna serve --config {}", file.path().display());
        let told = Caller { socket: Some("/e.sock".into()), ..caller() };
        assert_eq!(resolved(&line, &told).unwrap().socket, Path::new("/e.sock"));
        let line = format!(
            "{line} --state /s --socket /s.sock --nbd-socket /s.nbd --listen 1.2.3.4:5 \
             --io auto --dashboard [::1]:4"
        );
        let expected = Resolved {
            config: Some(file.path().into()),
            state: "/s".into(),
            socket: "/s.sock".into(),
            nbd_socket: "/s.nbd".into(),
            listen: vec!["1.2.3.4:5".parse().unwrap()],
            io: IoArg::Auto,
            dashboard: Some("[::1]:4".parse().unwrap()),
        };
        assert_eq!(resolved(&line, &told).unwrap(), expected);
    }

    #[test]
    fn the_nbd_socket_is_beside_the_apis_wherever_that_is_said() {
        let file = file("socket = '/run/other/api.sock'");
        let line = format!("sterna serve --config {}", file.path().display());
        let nbd = resolved(&line, &caller()).unwrap().nbd_socket;
        assert_eq!(nbd, Path::new("/run/other/nbd.sock"));
    }

    #[test]
    fn the_dashboard_is_for_this_host_alone() {
        for address in ["0.0.0.0:80", "192.0.2.1:80", "[::]:80", "localhost:80"] {
            let line = format!("sterna serve --dashboard {address}");
            let refused = Cli::try_parse_from(line.split_whitespace()).unwrap_err();
            assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
        }
    }

    #[test]
    fn a_file_that_is_named_has_to_be_there() {
        let error = resolved("sterna serve --config /nowhere.toml", &caller());
        assert!(error.unwrap_err().to_string().contains("/nowhere.toml"));
        let none = resolved("sterna serve", &caller()).unwrap();
        assert_eq!(none.config, None);
        assert_eq!(none.state, Path::new("/home/u/.local/state/sterna"));
    }
}
