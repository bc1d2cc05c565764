//! What a program may have at most, and what to do where it has all of that.

use std::sync::mpsc;
use std::thread::{self, Builder};
use std::time::Duration;
use std::{fs, io};

use sterna_api::{Error, Result};

use crate::descriptors;

/// What to do where the system gives no memory.
const MEMORY: &str = "free memory on the host, or raise the limit of the daemon's address \
                      space (`ulimit -v`, LimitAS= in the daemon's unit)";

/// What to do where the system gives no thread: it needs room for the thread's stack, too.
pub const THREADS: &str = "raise the limit of threads (TasksMax= in the daemon's unit, \
                           `ulimit -u`), or that of the daemon's address space (`ulimit \
                           -v`, LimitAS=)";

/// What to do where a daemon gets too few threads at its start. (Those that are tried have small
/// stacks, so the address space is hardly the reason.)
const START: &str = "raise the limit of threads (TasksMax= in the daemon's unit, the limit of \
                     PIDs of its container, `ulimit -u`); threads of another daemon that still \
                     runs, or hangs with its storage, may count as well";

/// So many threads more are for questions to some datastores, a move and requests at the same
/// time.
const SPARE: usize = 16;

/// A thread that only waits needs no more of a stack, so that the number of threads alone is
/// tried.
const SMALL_STACK: usize = 64 << 10;

/// A thread that has ended counts until the kernel has taken it off its lists: this long at most
/// the check waits for that, in so many looks.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(1);

/// What the system gave of threads that were to be there at the same time.
struct Given {
    count: usize,
    /// Why there were no more.
    refused: Option<io::Error>,
}

/// Refuses to start a daemon that may not open the files that it needs, or if the system does not
/// give all the threads `needed` at once: libraries panic without theirs. What this gives is a
/// warning: the system gives these, and few more.
pub fn check_start(needed: usize) -> Result<Option<String>> {
    descriptors::check_start()?;
    judged(needed, given(needed + SPARE, SMALL_STACK))
}

fn judged(needed: usize, given: Given) -> Result<Option<String>> {
    let Given { count, refused: Some(error) } = given else { return Ok(None) };
    match count.checked_sub(needed) {
        None => Err(Error::unavailable(format!(
            "the daemon needs {needed} threads to start, and the system gives {count}: {error}"
        ))
        .hint(START)),
        Some(more) => Ok(Some(format!(
            "the system gives the daemon {more} threads more than the {needed} with which it \
             starts, so it may have to refuse moves and requests, and datastores may look \
             offline ({error}): {START}"
        ))),
    }
}

/// Has so many threads at the same time, if the system gives them.
fn given(count: usize, stack: usize) -> Given {
    let before = running();
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
    let count = waiting.len();
    let (all, threads): (Vec<_>, Vec<thread::JoinHandle<()>>) =
        waiting.into_iter().unzip();
    drop(all);
    for thread in threads {
        // It has only waited.
        let _ = thread.join();
    }
    // Those that are started next must not be refused because of these.
    for _ in 0..LOOKS {
        if running() <= before {
            break;
        }
        thread::sleep(LOOK);
    }
    Given { count, refused }
}

/// How many threads this process has; 0 if the system does not say.
fn running() -> usize {
    fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
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

    fn refused_after(count: usize) -> Given {
        let refused = Some(io::Error::from_raw_os_error(libc::EAGAIN));
        Given { count, refused }
    }

    #[test]
    fn threads_are_tried_until_the_system_refuses_one() {
        let all = given(2, SMALL_STACK);
        assert!(all.count == 2 && all.refused.is_none());
        // No machine has so much memory.
        let none = given(2, 1 << 60);
        assert!(none.count == 0 && none.refused.is_some());
    }

    #[test]
    fn a_start_without_enough_threads_says_how_many_there_are_and_which_limit_it_is() {
        let refused = judged(31, refused_after(30)).unwrap_err();
        assert!(refused.message.contains("needs 31 threads to start"), "{refused:?}");
        assert!(refused.message.contains("the system gives 30"), "{refused:?}");
        assert!(refused.hint.contains("TasksMax="), "{refused:?}");
        assert!(refused.hint.contains("ulimit -u"), "{refused:?}");
        assert!(!refused.hint.contains("LimitAS"), "small stacks do not meet it");
    }

    #[test]
    fn a_start_with_just_enough_threads_is_a_warning_and_with_more_it_is_none() {
        let warning = judged(31, refused_after(31)).unwrap().unwrap_or_default();
        assert!(
            warning.contains("gives the daemon 0 threads more than the 31"),
            "{warning}"
        );
        let plenty = Given { count: 31 + SPARE, refused: None };
        assert_eq!(judged(31, plenty).unwrap(), None);
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
