//! What the kind of a file system says of its files.

/// The kinds that write to new places, by what `statfs` says of them.
const BTRFS: u32 = 0x9123_683E;
const BCACHEFS: u32 = 0xCA45_1A4E;
const ZFS: u32 = 0x2FC1_2FC1;
const NILFS: u32 = 0x3434;

/// Whether a file system of this kind writes to new places, and so needs room for every
/// write, also for the second one of a block.
pub fn is_copied_on_write(kind: u32) -> bool {
    matches!(kind, BTRFS | BCACHEFS | ZFS | NILFS)
}
