//! What a program says on a terminal, and how it hears that it is to end.
//!
//! **What it is.** An answer goes to stdout, as JSON or in words ([`output`]). Words are
//! tables and pairs in 80 columns ([`table`]), quantities with their units ([`format`]) and
//! service levels ([`terms`]). While something takes long, a [`screen`] shows the phase and
//! the time left, on stderr. [`connect`] is the way to the daemon, and says what to do next
//! if that fails. An [`interruption`] is Ctrl-C, a polite kill or a terminal that goes away.
//!
//! **What it never does.** It knows no command and decides nothing. It never panics because
//! nobody reads. Text that others have named reaches a terminal only with its control
//! characters made visible.
//!
//! **Where to begin.** A command gets an [`output::Output`] and a [`connect::Link`], asks
//! the daemon with [`connect::Link::ask`], and shows what it heard with
//! [`output::Output::answer`].
#![forbid(unsafe_code)]
// They panic where nobody reads; `output` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod connect;
pub mod format;
pub mod interruption;
pub mod output;
pub mod screen;
pub mod table;
pub mod terms;
