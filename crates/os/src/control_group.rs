//! The control group of a process, which the kernel is told to free memory of.
//!
//! What has gone out to swap stays in memory as well until somebody needs the room: the kernel
//! frees it when it is asked for memory, or when it is told to free memory of a group. Of a group
//! of version 2 it frees as much as it is told (`memory.reclaim`), and says how much is in memory
//! as well. Of one of version 1 it frees all that it can, also what the process itself needs to run
//! (`memory.force_empty`): such a group is left alone.
//!
//! A limit would do the same, and would stay if its author were killed: none is set here.
//!
//! Only a group that has nobody else is told: others would lose memory that nobody spoke of.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the system has groups of version 2, if it has no others, or beside others.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// A control group with one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    /// The file by which the kernel is told.
    file: PathBuf,
}

impl ControlGroup {
    /// The group that only this process is in, if there is one of which memory can be freed.
    pub fn of(pid: i32) -> Option<ControlGroup> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        found(&text, pid, &ROOTS.map(Path::new))
    }

    /// How much of it is on swap and in memory as well and not in use, in bytes, if so many bytes
    /// of the process are out. (What is in use and has a place on swap counts as on swap, and not
    /// as out.)
    pub fn copies(&self, out: u64) -> io::Result<u64> {
        let stat = fs::read_to_string(self.file.with_file_name("memory.stat"))?;
        let on_swap =
            fs::read_to_string(self.file.with_file_name("memory.swap.current"))?;
        let lines = stat.lines().filter_map(|line| line.split_once(' '));
        let mut found = lines.filter(|(name, _)| *name == "swapcached");
        let number = |text: &str| text.trim().parse().unwrap_or(0u64);
        let cached = found.next().map_or(0, |(_, bytes)| number(bytes));
        let in_use = number(&on_swap).saturating_sub(out);
        Ok(cached.saturating_sub(in_use))
    }

    /// Has the kernel free so many bytes of it. Returns when that is done, or when it can free no
    /// more.
    pub fn free(&self, bytes: u64) -> io::Result<()> {
        match fs::write(&self.file, bytes.to_string()) {
            // It has freed less: the rest is in use.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            answer => answer,
        }
    }
}

/// What the kernel's list of a process's groups leads to, where groups are below these roots.
fn found(text: &str, pid: i32, roots: &[&Path]) -> Option<ControlGroup> {
    // The one without controllers is of version 2. The root is everybody's.
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let path = path.strip_prefix('/').filter(|path| !path.is_empty())?;
    roots.iter().find_map(|root| {
        let place = root.join(path);
        let file = place.join("memory.reclaim");
        let members = fs::read_to_string(place.join("cgroup.procs")).unwrap_or_default();
        let is_alone = members.split_whitespace().eq([pid.to_string().as_str()]);
        (file.exists() && is_alone).then_some(ControlGroup { file })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree as the kernel has it: version 2 with this controller is to be had on no machine
    /// that the tests run on.
    fn tree(at: &str, members: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join(at);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("cgroup.procs"), members).unwrap();
        fs::write(place.join("memory.reclaim"), "").unwrap();
        fs::write(place.join("memory.stat"), "anon 7\nswapcached 8192\n").unwrap();
        fs::write(place.join("memory.swap.current"), "20480\n").unwrap();
        root
    }

    #[test]
    fn a_group_of_its_own_is_told_how_much() {
        let root = tree("machine.slice/qemu-1.scope", "71\n");
        let text = "12:pids:/a\n0::/machine.slice/qemu-1.scope\n";
        let nowhere = Path::new("/nowhere");
        let group = found(text, 71, &[nowhere, root.path()]).unwrap();
        // Of 20 KiB on swap 16 are out: 4 of those in memory as well are in use.
        assert_eq!(group.copies(16384).unwrap(), 4096);
        assert_eq!(group.copies(20480).unwrap(), 8192);
        assert_eq!(group.copies(0).unwrap(), 0);
        group.free(4096).unwrap();
        let file = root.path().join("machine.slice/qemu-1.scope/memory.reclaim");
        assert_eq!(fs::read_to_string(file).unwrap(), "4096");
    }

    #[test]
    fn a_group_with_others_and_the_root_are_left_alone() {
        let root = tree("user.slice", "71\n72\n");
        assert_eq!(found("0::/user.slice\n", 71, &[root.path()]), None);
        let root = tree("", "71\n");
        assert_eq!(found("0::/\n", 71, &[root.path()]), None);
        // Of version 1.
        assert_eq!(found("3:memory:/vm\n", 71, &[root.path()]), None);
        assert_eq!(found("", 71, &[root.path()]), None);
    }
}
