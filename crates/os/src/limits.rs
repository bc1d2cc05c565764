//! What a program may have at most, and what to do where it has all of that.

use std::io;

use crate::descriptors;

/// What to do where the system gives no memory.
const MEMORY: &str = "free memory on the host, or raise the limit of the daemon's address \
                      space (`ulimit -v`, LimitAS= in the daemon's unit)";

/// What to do where the system gives no thread: it needs room for the thread's stack, too.
pub const THREADS: &str = "raise the limit of threads (TasksMax= in the daemon's unit, \
                           `ulimit -u`), or that of the daemon's address space (`ulimit \
                           -v`, LimitAS=)";

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
    fn each_limit_is_named() {
        let hint = |code| hint(&io::Error::from_raw_os_error(code)).unwrap_or_default();
        assert!(hint(libc::ENOMEM).contains("ulimit -v"));
        assert!(hint(libc::EAGAIN).contains("TasksMax="));
        assert!(hint(libc::EMFILE).contains("LimitNOFILE="));
        assert_eq!(hint(libc::EIO), "");
    }
}
