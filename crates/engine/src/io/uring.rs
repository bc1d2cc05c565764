//! io_uring.
use super::{Completion, Io, Op, Token};
use crate::buffer::Pool;
use std::io;
use std::time::Duration;
pub(super) struct Uring;
impl Uring {
    pub(super) fn open(_pool: &Pool) -> io::Result<Uring> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
impl Io for Uring {
    fn submit(&mut self, _token: Token, _op: Op) {}
    fn wait(&mut self, _timeout: Option<Duration>, _out: &mut Vec<Completion>) {}
    fn cancel(&mut self, _token: Token) {}
    fn in_flight(&self) -> usize {
        0
    }
}
