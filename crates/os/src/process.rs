//! What the standard library has no safe way for: programs that are started as if this one had
//! changed nothing of itself, and signals that are ignored.

use std::os::unix::process::CommandExt;
use std::process::Command;

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
