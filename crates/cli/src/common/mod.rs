//! Options that several commands share, and the parsers of their values.

pub(crate) mod guard;
pub(crate) mod number;
pub(crate) mod rate;
pub(crate) mod strength;
pub(crate) mod text_file;
pub(crate) mod verification;

use std::path::PathBuf;

use clap::Args;

/// The heading of what every command takes.
pub(crate) const GLOBAL: &str = "Global options";

/// The address of the daemon's API.
#[derive(Debug, Default, Args)]
pub(crate) struct SocketArg {
    /// The daemon's API socket [default: STERNA_SOCKET, else /run/sterna/sterna.sock
    /// for root, $XDG_RUNTIME_DIR/sterna/sterna.sock for other users, and
    /// /tmp/sterna-UID/sterna.sock without XDG_RUNTIME_DIR]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        help_heading = GLOBAL
    )]
    pub(crate) socket: Option<PathBuf>,
}

/// The name of one thing that exists.
#[derive(Debug, Args)]
pub(crate) struct NameArg {
    /// Its name
    pub(crate) name: String,
}
