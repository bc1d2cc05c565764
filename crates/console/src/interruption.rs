//! The wish to end what runs: Ctrl-C, a polite kill, or a terminal that goes away.
//!
//! Whoever has started something that must not stay (a daemon, a disk, a guest) listens
//! for all three from its beginning, and cleans up. A hang-up that this program was started
//! to ignore (`nohup`) stays ignored.

use std::fs;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that say so.
pub struct Interruption {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

/// Which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Somebody wants it to end.
    Asked,
    /// Nobody is left to see how it ends.
    HungUp,
}

impl Interruption {
    /// Heard from now on.
    pub fn listen() -> anyhow::Result<Interruption> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let hang_up = match ignores_hang_ups() {
            true => None,
            false => Some(listen(SignalKind::hangup())?),
        };
        let interrupt = listen(SignalKind::interrupt())?;
        let terminate = listen(SignalKind::terminate())?;
        Ok(Interruption { interrupt, terminate, hang_up })
    }

    /// Waits for the next one.
    pub async fn heard(&mut self) -> Heard {
        let hang_up = self.hang_up.as_mut();
        let hung_up = async {
            match hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => None,
            }
        };
        // No end of signals is a signal.
        tokio::select! {
            Some(()) = self.interrupt.recv() => Heard::Asked,
            Some(()) = self.terminate.recv() => Heard::Asked,
            Some(()) = hung_up => Heard::HungUp,
            else => std::future::pending().await,
        }
    }
}

/// Whether this program was started such that it ignores hang-ups.
fn ignores_hang_ups() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| has_hang_up(&status))
}

/// Whether the first signal, SIGHUP, is among those that are ignored.
fn has_hang_up(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_seen_whether_hang_ups_are_ignored() {
        assert!(has_hang_up("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"));
        assert!(!has_hang_up("SigIgn:\t0000000000001000\n"));
        assert!(!has_hang_up(""));
    }
}
