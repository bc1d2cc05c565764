//! What is received, cut into lines.
//!
//! A line ends with a line feed; QEMU puts a carriage return before it. A line that
//! does not end is not kept for ever: past [`LINE_MAX`] whoever is at the other end is
//! not QEMU.

/// The longest line: a hundred times what a VM with fifty disks answers to the longest
/// question that we ask.
pub const LINE_MAX: usize = 4 << 20;

/// A line is longer than any answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {LINE_MAX} bytes")]
pub struct TooLong;

/// Cuts a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    /// What belongs to a line that has not ended.
    rest: Vec<u8>,
}

impl Lines {
    /// Takes what was received; gives the lines that it completes, without their ends.
    /// Empty lines mean nothing and are left out.
    pub fn push(&mut self, mut received: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut lines = Vec::new();
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            self.keep(&received[..end])?;
            received = &received[end + 1..];
            let mut line = std::mem::take(&mut self.rest);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if !line.is_empty() {
                lines.push(line);
            }
        }
        self.keep(received)?;
        Ok(lines)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.rest.len() + part.len() > LINE_MAX {
            return Err(TooLong);
        }
        self.rest.extend_from_slice(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_that_never_ends_is_refused() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(&vec![b'x'; LINE_MAX]), Ok(Vec::new()));
        assert_eq!(lines.push(b"x"), Err(TooLong));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_what_pieces_lines_come(
            lines in prop::collection::vec("[ -~]{1,20}", 0..8),
            sizes in prop::collection::vec(1usize..9, 1..40),
        ) {
            let text: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\r\n").into_bytes()).collect();
            let (mut cut, mut at, mut found) = (Lines::default(), 0, Vec::new());
            for size in sizes.iter().cycle() {
                if at == text.len() {
                    break;
                }
                let end = (at + size).min(text.len());
                found.extend(cut.push(&text[at..end]).unwrap());
                at = end;
            }
            let expected: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into_bytes()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
