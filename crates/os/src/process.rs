//! What the standard library has no safe way for: programs that are started as if this one had
//! changed nothing of itself, signals that are ignored, and two requests to the kernel about other
//! processes.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// Has a program begin with this soft limit of open files. A program that waits by
/// `select` fails past 1024, and one that closes every descriptor there may be takes long:
/// so that the daemon may have more of them is its own affair.
pub(crate) fn with_soft_limit(command: &mut Command, files: u64) {
    let lower = move || {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls take a pointer to a structure of ours, and are among those
        // that are allowed between fork and exec.
        let result = unsafe {
            if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) < 0 {
                -1
            } else {
                limit.rlim_cur = files.min(limit.rlim_max);
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
            }
        };
        if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(lower) };
}

/// From now on this process is not stopped if it reads from a terminal, or writes to one, of
/// which it is not in the foreground. Nor are the programs that it starts.
pub(crate) fn ignore_terminals() {
    for signal in [libc::SIGTTIN, libc::SIGTTOU] {
        // SAFETY: nothing of ours runs when the signal comes.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Advises the kernel about addresses of the process that this descriptor holds. Gives how many
/// bytes it has gone through.
pub(crate) fn advise(
    process: &OwnedFd,
    range: &Range<u64>,
    advice: libc::c_int,
) -> io::Result<u64> {
    let (start, len) = (range.start, range.end.saturating_sub(range.start));
    let part =
        libc::iovec { iov_base: start as *mut libc::c_void, iov_len: len as usize };
    // SAFETY: the kernel reads one vector of ours. Its address is one of the other process, which
    // is not read or written here; those who call give advice that changes no content.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            &raw const part,
            1_usize,
            advice,
            0_u32,
        )
    };
    u64::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Begins to trace a thread of another process, and has it stand still soon.
pub(crate) fn stop_thread(thread: i32) -> io::Result<()> {
    let none = ptr::null_mut::<libc::c_void>();
    for request in [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT] {
        // SAFETY: both requests take no address of ours, and read and write no memory.
        let done = unsafe { libc::ptrace(request, thread, none, none) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_limit_that_it_is_given() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -Sn"]);
        with_soft_limit(&mut shell, 77);
        let said = shell.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "77");
    }
}
