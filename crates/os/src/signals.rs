//! The signals that the daemon hears: which of them end it in good order, and which are of no
//! account.
//!
//! A signal that nobody hears ends a process at once, without a flush and without a word. So
//! the daemon hears all that somebody may send it by mistake, or the kernel because of a
//! limit. SIGQUIT and the signals of crashes are left as they are: they ask for a dump of the
//! memory.
//!
//! A signal that is heard, unlike one that is ignored, is as usual again in the programs that
//! the daemon starts.
//!
//! **Job control.** A daemon that stands still keeps all its guests waiting. So Ctrl-Z does not
//! stop it, nor what the terminal sends a job in the background that reads or writes there.
//! These two are ignored, and not only heard: the kernel sends a writer that hears SIGTTOU the
//! signal again and again, and lets one write that ignores it. Only SIGSTOP stops the daemon.

use std::fs;

use sterna_api::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::process;

/// What ends the daemon in good order, with the reason for the log.
const ENDING: [(i32, &str); 4] = [
    (libc::SIGTERM, "told to stop (SIGTERM)"),
    (libc::SIGINT, "told to stop (SIGINT)"),
    (libc::SIGHUP, "the terminal was closed (SIGHUP); nohup or systemd keep the daemon"),
    (libc::SIGXCPU, "the limit of processor time is reached (SIGXCPU)"),
];

/// What has no meaning for the daemon.
const IGNORED: [(i32, &str); 9] = [
    (libc::SIGTSTP, "SIGTSTP"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (libc::SIGSTKFLT, "SIGSTKFLT"),
];

/// The signals, from the moment on at which this was made.
pub struct Signals {
    ending: Vec<(Signal, &'static str)>,
}

impl Signals {
    /// Begins to hear them.
    pub fn hear() -> Result<Signals> {
        // The write beyond the limit (`ulimit -f`, `LimitFSIZE=`) fails, and that is told
        // where it fails. Once heard, the signal does nothing else any more.
        drop(listen(libc::SIGXFSZ)?);
        process::ignore_terminals();
        for (number, name) in IGNORED {
            let mut signals = listen(number)?;
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    tracing::warn!(signal = name, "Sterna ignores a signal");
                }
            });
        }
        let ignored =
            ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        let mut ending = Vec::new();
        for (number, why) in ENDING {
            // `nohup` says so; what the others were before is of no account.
            if number != libc::SIGHUP || ignored & bit(libc::SIGHUP) == 0 {
                ending.push((listen(number)?, why));
            }
        }
        Ok(Signals { ending })
    }

    /// Waits for a signal that ends the daemon; gives the reason.
    pub async fn end(mut self) -> &'static str {
        std::future::poll_fn(|context| {
            let mut came = self.ending.iter_mut().filter_map(|(signal, why)| {
                signal.poll_recv(context).is_ready().then_some(*why)
            });
            match came.next() {
                Some(why) => std::task::Poll::Ready(why),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }
}

fn listen(number: i32) -> Result<Signal> {
    signal(SignalKind::from_raw(number))
        .map_err(|error| Error::internal(format!("cannot listen to signals: {error}")))
}

fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

/// The signals that a process ignores, by its `status` in /proc.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_ignores_is_read_from_its_status() {
        let status =
            "Name:\tsterna\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        let ignored = ignored(status);
        assert_ne!(ignored & bit(libc::SIGHUP), 0);
        assert_ne!(ignored & bit(libc::SIGPIPE), 0);
        assert_eq!(ignored & bit(libc::SIGTERM), 0);
        assert_eq!(super::ignored("Name:\tsterna\n"), 0);
    }
}
