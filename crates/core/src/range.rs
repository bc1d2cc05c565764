//! A stretch of bytes on a disk.

/// The bytes from `offset`, `len` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

impl ByteRange {
    /// The range from `offset`, `len` bytes long.
    pub const fn new(offset: u64, len: u64) -> Self {
        ByteRange { offset, len }
    }

    /// The first byte behind the range.
    pub const fn end(self) -> u64 {
        self.offset + self.len
    }

    /// Whether any byte belongs to both.
    pub const fn overlaps(self, other: ByteRange) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}
