//! Swap of this machine: which files and devices the kernel swaps to, and adding and removing one.
//!
//! `mkswap`, `swapon` and `swapoff` of util-linux do the work: they know what the kernel refuses,
//! and say why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sterna_api::{Error, Result};

/// What the kernel swaps to now.
const TABLE: &str = "/proc/swaps";

/// A file or device that the kernel swaps to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The file or device.
    pub path: PathBuf,
    /// How large it is, in bytes.
    pub size: u64,
    /// How much of it is in use, in bytes.
    pub used: u64,
    /// The kernel fills those of the highest priority first.
    pub priority: i32,
}

/// All that the kernel swaps to, in its own order.
pub fn list() -> io::Result<Vec<Swap>> {
    Ok(fs::read_to_string(TABLE)?.lines().skip(1).filter_map(swap).collect())
}

/// Makes a file or device fit to swap to: what is on it is lost.
pub fn format(path: &Path, label: &str) -> Result<()> {
    let mut command = Command::new("mkswap");
    command.args(["--label", label, "--"]).arg(path);
    run(command, "make swap of", path).map(drop)
}

/// Has the kernel swap to what was made fit for it, at this priority. A device that can is told
/// which of its blocks hold nothing any more.
pub fn begin(path: &Path, priority: i16) -> Result<()> {
    let mut command = Command::new("swapon");
    command.args(["--priority", &priority.to_string(), "--"]).arg(path);
    run(command, "swap to", path).map(drop)
}

/// Has the kernel swap to it no more: all that is there comes back to memory first, which takes
/// as long as reading it does. Refused by the kernel if memory has no room for it.
pub fn end(path: &Path) -> Result<()> {
    let mut command = Command::new("swapoff");
    command.arg("--").arg(path);
    run(command, "end swapping to", path).map(drop)
}

fn run(mut command: Command, what: &str, path: &Path) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let cannot = format!("cannot {what} {}", path.display());
    let output = command.output().map_err(|error| {
        Error::unavailable(format!("{cannot}: {name}: {error}"))
            .hint("install util-linux, which has mkswap, swapon and swapoff")
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches(&format!("{name}: ")).to_owned();
    Err(Error::unavailable(format!("{cannot}: {name} says: {said}")))
}

/// A line of the kernel's table: "file type size used priority", sizes in KiB. Blanks in a name
/// are written as `\040`.
fn swap(line: &str) -> Option<Swap> {
    let mut fields = line.split_whitespace();
    let path = PathBuf::from(unescaped(fields.next()?));
    let _kind = fields.next()?;
    let mut kib = || fields.next()?.parse::<u64>().ok()?.checked_mul(1024);
    let (size, used) = (kib()?, kib()?);
    Some(Swap { path, size, used, priority: fields.next()?.parse().ok()? })
}

/// A name as it is, of one in which some characters are three octal digits.
fn unescaped(name: &str) -> String {
    let mut parts = name.split('\\');
    let mut plain = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(code);
                plain.extend_from_slice(&part.as_bytes()[3..]);
            }
            None => {
                plain.push(b'\\');
                plain.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let line = "/mnt/a\\040b/swap                file\t\t1048572\t\t512\t\t-2";
        let expected = Swap {
            path: "/mnt/a b/swap".into(),
            size: 1_048_572 << 10,
            used: 512 << 10,
            priority: -2,
        };
        assert_eq!(swap(line), Some(expected));
        assert_eq!(swap("/mnt/swap file"), None);
        assert!(list().is_ok());
    }

    #[test]
    fn what_cannot_be_swapped_to_is_refused_in_the_programs_words() {
        let error = begin(Path::new("/proc/version"), 5).unwrap_err();
        assert!(error.message.contains("cannot swap to /proc/version: swapon says: "));
    }
}
