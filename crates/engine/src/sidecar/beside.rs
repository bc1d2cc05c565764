//! What a sidecar keeps of the file that it is beside, to know it again.

/// What is kept of a file over a reboot: its number, and when it was made, in
/// nanoseconds since 1970. 0 if the file system does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its number in its file system.
    pub number: u64,
    /// When it was made.
    pub made: u64,
}

impl Beside {
    /// Whether both are of one file of a file system, as far as that is known.
    pub fn fits(&self, other: &Beside) -> bool {
        let known = self.made != 0 && other.made != 0;
        self.number == other.number && (!known || self.made == other.made)
    }

    /// Whether both are surely of one file, on one file system.
    pub fn is_surely(&self, other: &Beside) -> bool {
        self.made != 0 && self == other
    }

    /// Whether both are surely of two files. Without the moments at which they were made
    /// that is not sure: some file systems give files new numbers when they are mounted.
    pub fn differs(&self, other: &Beside) -> bool {
        self.made != 0 && other.made != 0 && self != other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_when_they_were_made_if_that_is_known() {
        let of = |number, made| Beside { number, made };
        assert!(of(7, 1).fits(&of(7, 1)) && !of(7, 1).fits(&of(7, 2)));
        assert!(of(7, 0).fits(&of(7, 2)) && !of(7, 0).fits(&of(8, 2)));
        assert!(of(7, 1).differs(&of(7, 2)) && of(7, 1).differs(&of(8, 1)));
        assert!(!of(7, 0).differs(&of(8, 0)) && !of(7, 1).differs(&of(7, 1)));
        assert!(of(7, 1).is_surely(&of(7, 1)) && !of(7, 0).is_surely(&of(7, 0)));
        assert!(!of(7, 1).is_surely(&of(7, 2)) && !of(7, 1).is_surely(&of(8, 1)));
    }
}
