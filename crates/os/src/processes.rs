//! The programs that run on this machine, by how they were started.

use std::fs::{self, File};
use std::io::Read;

/// A longer command line is cut: QEMU's, of a machine with a hundred disks, has some 50 KB.
const LINE_MAX: u64 = 1 << 20;

/// Processes whose program's name begins like one of these, with number and arguments. Those
/// that end meanwhile, or may not be seen, are left out.
pub fn started(names: &[&str]) -> Vec<(u32, Vec<String>)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid: u32| Some((pid, arguments(pid, names)?))).collect()
}

fn arguments(pid: u32, names: &[&str]) -> Option<Vec<String>> {
    // Cheap, and enough for nearly all.
    let called = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    if !names.iter().any(|name| called.starts_with(name)) {
        return None;
    }
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(LINE_MAX).read_to_end(&mut line).ok()?;
    let arguments = line.split(|byte| *byte == 0);
    Some(arguments.map(|it| String::from_utf8_lossy(it).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_is_found_with_its_arguments() {
        let mut sleep = std::process::Command::new("sleep").arg("77").spawn().unwrap();
        let is_it = |(pid, arguments): &(u32, Vec<String>)| {
            *pid == sleep.id() && arguments.get(1).is_some_and(|it| it == "77")
        };
        // It has its name a moment before it has its arguments.
        let began = Instant::now();
        let mut is_found = false;
        while !is_found && began.elapsed() < Duration::from_secs(10) {
            is_found = started(&["sleep"]).iter().any(is_it);
        }
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert!(is_found);
    }
}
