//! Files that people write: scenarios, tiles, the daemon's options.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest, in bytes: far more than anybody writes, and no memory for what never ends.
const LONGEST: u64 = 4 << 20;

/// Reads a file as text. If the file has more than 4 MiB, or is not UTF-8, that is an error.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        let too_long = "it has more than 4 MiB; check that it is the right file";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_long));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_ends_is_refused() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().contains("more than 4 MiB"), "{error}");
    }
}
