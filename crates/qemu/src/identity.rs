//! Which QEMU a VM is.
//!
//! A QEMU can have several monitors, and its name and UUID are whatever it was started
//! with: all zero if nobody said, and the same if a command line was copied. So it is known
//! by what its host's kernel gives to nobody else at the time: the process that listens at
//! the monitor, and the threads that run its processors.
//!
//! It takes both. Somebody who stands between (`ssh -L`, `socat`) may listen for several
//! QEMUs; and threads are numbered anew on each host, and in each container. Where one of
//! them is not known, nothing is said. Two who stand between one QEMU and Sterna hide that
//! it is one.

use std::collections::BTreeSet;

/// Which QEMU a VM is. Two that were asked at the same time and have the same are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    process: i32,
    threads: BTreeSet<i64>,
}

impl Identity {
    /// By the process that listens, and the threads that run the VM's processors.
    pub(crate) fn of(process: Option<i32>, threads: BTreeSet<i64>) -> Option<Identity> {
        let process = process.filter(|_| !threads.is_empty())?;
        Some(Identity { process, threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(process: impl Into<Option<i32>>, threads: &[i64]) -> Option<Identity> {
        Identity::of(process.into(), threads.iter().copied().collect())
    }

    #[test]
    fn a_qemu_is_its_process_and_its_threads() {
        assert_eq!(of(7, &[8, 9]), of(7, &[9, 8]));
        assert_ne!(of(7, &[8, 9]), of(7, &[10, 11]), "somebody is between");
        assert_ne!(of(7, &[8, 9]), of(5, &[8, 9]), "on another host");
    }

    #[test]
    fn of_one_that_cannot_be_seen_nothing_is_said() {
        assert_eq!(of(None, &[8]), None);
        assert_eq!(of(7, &[]), None);
    }
}
