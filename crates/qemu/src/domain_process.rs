//! Which process a VM of libvirt's is.
//!
//! libvirt keeps QEMU's monitor to itself. It starts each QEMU with the VM's UUID, and has it name
//! its threads; both can be seen in `/proc`.

use std::fs;

use crate::process::Process;

/// How QEMU names its threads that run processors: each, or all in one.
const PROCESSORS: [&str; 2] = ["CPU ", "ALL CPUs"];

impl Process {
    /// The one that runs the VM with this UUID on this host; nothing if there is none, or several:
    /// a VM that is just being migrated from one QEMU here to another.
    pub(crate) fn of_domain(uuid: &str) -> Option<Process> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let numbers = all.filter_map(|one| one.file_name().to_str()?.parse().ok());
        let numbers = numbers.filter(|pid| is_qemu(*pid));
        let mut found = numbers.filter(|pid| runs(*pid, uuid));
        let only = found.next()?;
        found.next().is_none().then(|| Process::of(only)).flatten()
    }

    /// Its threads that run the guest's processors, as far as their names tell.
    pub(crate) fn named_processors(self) -> Vec<i64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid));
        let is_one = |thread: &i64| {
            let name = format!("/proc/{}/task/{thread}/comm", self.pid);
            let name = fs::read_to_string(name).unwrap_or_default();
            PROCESSORS.iter().any(|begin| name.starts_with(begin))
        };
        let threads = threads.into_iter().flatten().flatten();
        let numbers = threads.filter_map(|one| one.file_name().to_str()?.parse().ok());
        numbers.filter(is_one).collect()
    }
}

/// Whether a process calls itself QEMU. (To ask for its command line may take long, if it hangs.)
fn is_qemu(pid: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.starts_with("qemu")
}

/// Whether a process is a QEMU that runs the VM with this UUID.
fn runs(pid: i32, uuid: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    is_told(&line, uuid)
}

/// Whether a command line, as the kernel has it, is a QEMU's that was told this UUID.
fn is_told(line: &[u8], uuid: &str) -> bool {
    let mut words = line.split(|byte| *byte == 0);
    let is_qemu = words.next().is_some_and(|program| {
        let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        name.starts_with(b"qemu-")
    });
    let behind = words.skip_while(|word| *word != b"-uuid").nth(1);
    is_qemu && behind.is_some_and(|word| word.eq_ignore_ascii_case(uuid.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "8b3f7a52-6b7e-4c0e-9a41-3a1b4d0d2f10";

    #[test]
    fn the_vm_that_a_qemu_runs_is_told_on_its_command_line() {
        let line = |program: &str, uuid: &str| {
            format!("{program}\0-name\0guest=web\0-uuid\0{uuid}\0-m\0size=64\0")
        };
        let qemu = "/usr/bin/qemu-system-x86_64";
        assert!(is_told(line(qemu, UUID).as_bytes(), UUID));
        assert!(is_told(line(qemu, &UUID.to_uppercase()).as_bytes(), UUID));
        assert!(!is_told(line(qemu, &UUID.replace('8', "9")).as_bytes(), UUID));
        // Somebody who looks for it.
        assert!(!is_told(line("/usr/bin/pgrep", UUID).as_bytes(), UUID));
        assert!(!is_told(b"/usr/bin/qemu-system-x86_64\0-uuid\0", UUID));
        assert!(!is_told(b"", UUID));
    }

    #[test]
    fn a_process_without_a_vm_has_no_processors() {
        let own = Process::of(std::process::id().cast_signed()).unwrap();
        assert!(own.named_processors().is_empty());
        assert_eq!(Process::of_domain(UUID), None);
    }
}
