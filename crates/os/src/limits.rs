//! What a program may have at most, and what to do where it has all of that.

use std::io;
use std::sync::mpsc;
use std::thread::{self, Builder};

use sterna_api::{Error, Result};

use crate::descriptors;

/// What to do where the system gives no memory.
const MEMORY: &str = "free memory on the host, or raise the limit of the daemon's address \
                      space (`ulimit -v`, LimitAS= in the daemon's unit)";

/// What to do where the system gives no thread: it needs room for the thread's stack, too.
pub const THREADS: &str = "raise the limit of threads (TasksMax= in the daemon's unit, \
                           `ulimit -u`), or that of the daemon's address space (`ulimit \
                           -v`, LimitAS=)";

/// What a daemon starts with: the tasks of its services, the log, the API, and the reactors of
/// a small machine. (An idle daemon has 33; what is refused later is done without.)
const START: usize = 32;

/// A thread that only waits needs no more of a stack, so that the number of threads alone is
/// tried.
const SMALL_STACK: usize = 64 << 10;

/// Refuses to start a daemon that may not open the files that it needs, or if the system does not
/// give all its threads at once: libraries panic without theirs.
pub fn check_start() -> Result<()> {
    descriptors::check_start()?;
    check_threads(START, SMALL_STACK)
}

fn check_threads(count: usize, stack: usize) -> Result<()> {
    let (mut waiting, mut refused) = (Vec::new(), None);
    for _ in 0..count {
        let (release, held) = mpsc::channel::<()>();
        let wait = move || {
            let _ = held.recv();
        };
        match Builder::new().name("sterna-limit".into()).stack_size(stack).spawn(wait) {
            Ok(thread) => waiting.push((release, thread)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let got = waiting.len();
    let (all, threads): (Vec<_>, Vec<thread::JoinHandle<()>>) =
        waiting.into_iter().unzip();
    drop(all);
    for thread in threads {
        // It has only waited.
        let _ = thread.join();
    }
    let Some(error) = refused else { return Ok(()) };
    let message = format!(
        "the daemon needs {count} threads to start, and the system gives {got}: {error}"
    );
    Err(Error::unavailable(message).hint(THREADS))
}

/// What to do about a failure, if a limit is its reason.
pub fn hint(error: &io::Error) -> Option<&'static str> {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Some(MEMORY);
    }
    match error.raw_os_error()? {
        libc::EAGAIN => Some(THREADS),
        libc::EMFILE | libc::ENFILE => Some(descriptors::HINT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_without_enough_threads_says_how_many_there_are_and_which_limit_it_is() {
        check_threads(2, SMALL_STACK).unwrap();
        // No machine has so much memory.
        let refused = check_threads(2, 1 << 60).unwrap_err();
        assert!(refused.message.contains("needs 2 threads to start"), "{refused:?}");
        assert!(refused.message.contains("the system gives 0"), "{refused:?}");
        assert!(refused.hint.contains("TasksMax="), "{refused:?}");
        assert!(refused.hint.contains("ulimit -u"), "{refused:?}");
    }

    #[test]
    fn each_limit_is_named() {
        let hint = |code| hint(&io::Error::from_raw_os_error(code)).unwrap_or_default();
        assert!(hint(libc::ENOMEM).contains("ulimit -v"));
        assert!(hint(libc::EAGAIN).contains("TasksMax="));
        assert!(hint(libc::EMFILE).contains("LimitNOFILE="));
        assert_eq!(hint(libc::EIO), "");
    }
}
