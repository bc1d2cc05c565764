//! threads.
use super::{Completion, Io, Op, Token};
use std::io;
use std::time::Duration;
pub(super) struct Threads;
impl Threads {
    pub(super) fn open() -> io::Result<Threads> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
impl Io for Threads {
    fn submit(&mut self, _token: Token, _op: Op) {}
    fn wait(&mut self, _timeout: Option<Duration>, _out: &mut Vec<Completion>) {}
    fn cancel(&mut self, _token: Token) {}
    fn in_flight(&self) -> usize {
        0
    }
}
