//! What the experiment needs of its host, looked at before anything is made.
//!
//! Swap is the whole host's. So that nothing but the experiment's guest goes out, the host must
//! have memory to spare.

use std::fs;
use std::path::Path;

use rustix::process::geteuid;
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;

/// What the host has to have available beside the guest: with less, the kernel begins to take
/// memory out by itself.
const SPARE: u64 = 2 << 30;

/// Programs, and Debian's packages that have them.
const PROGRAMS: [(&str, &str); 6] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("nbdfuse", "libnbd-bin"),
    ("losetup", "mount"),
    ("mkswap", "util-linux"),
    ("setpriv", "util-linux"),
    ("umount", "mount"),
];

/// Where programs of root are looked for, beside the user's.
const MORE: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

/// Where control groups of version 1 have their memory.
pub(super) const GROUPS: &str = "/sys/fs/cgroup/memory";

/// Refuses to begin where the experiment cannot run; the guest has so much memory.
pub(super) fn check(guest: u64) -> anyhow::Result<()> {
    if !geteuid().is_root() {
        return refuse("only root may add swap", "run the experiment as root");
    }
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|(name, _)| !have(name)).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
        let mut packages: Vec<&str> =
            missing.iter().map(|(_, package)| *package).collect();
        packages.dedup();
        let message = format!("these programs are missing: {}", names.join(", "));
        return refuse(&message, &format!("apt install {}", packages.join(" ")));
    }
    if !Path::new(GROUPS).join("cgroup.procs").exists() {
        return refuse(
            "this host has no memory controller of control groups, version 1",
            "the experiment has the kernel free what it keeps of memory that is out; boot with \
             systemd.unified_cgroup_hierarchy=0",
        );
    }
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = available(&memory).unwrap_or_default();
    if available < guest + SPARE {
        let mib = |bytes: u64| bytes >> 20;
        let (has, wants) = (mib(available), mib(guest + SPARE));
        let message =
            format!("the host has {has} MiB of memory available, not {wants} MiB");
        return refuse(&message, "end other programs, or use another host");
    }
    Ok(())
}

fn refuse(message: &str, hint: &str) -> anyhow::Result<()> {
    let (message, hint) = (message.to_owned(), hint.to_owned());
    Err(Failure { code: ErrorCode::Unavailable, message, hint }.into())
}

fn have(program: &str) -> bool {
    let own = std::env::var("PATH").unwrap_or_default();
    let mut places = own.split(':').chain(MORE.split(':'));
    places.any(|place| Path::new(place).join(program).is_file())
}

/// What `/proc/meminfo` says is available, in bytes.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read() {
        let memory = "MemTotal: 4 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(memory), Some(2 << 20));
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(have("sh") && !have("no-program-has-this-name"));
    }
}
