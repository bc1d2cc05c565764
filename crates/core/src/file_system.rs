//! What the kind of a file system says of its files.

/// The kinds that write to new places, by what `statfs` says of them.
const BTRFS: u32 = 0x9123_683E;
const BCACHEFS: u32 = 0xCA45_1A4E;
const ZFS: u32 = 0x2FC1_2FC1;
const NILFS: u32 = 0x3434;

/// Kinds of which no two files share blocks.
const EXT: u32 = 0xEF53;
const TMPFS: u32 = 0x0102_1994;

/// Kinds of which the blocks are not on a disk of this host, with their names.
const ELSEWHERE: [(u32, &str); 6] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
];

/// What a file system of this kind is called if a server or a program has its blocks.
pub fn elsewhere(kind: u32) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

/// Whether files on a file system of this kind are memory.
pub fn is_in_memory(kind: u32) -> bool {
    kind == TMPFS
}

/// Whether a file system of this kind writes to new places, and so needs room for every
/// write, also for the second one of a block.
pub fn is_copied_on_write(kind: u32) -> bool {
    matches!(kind, BTRFS | BCACHEFS | ZFS | NILFS)
}

/// Whether a file system of this kind may let files share their blocks.
pub fn may_share_blocks(kind: u32) -> bool {
    !matches!(kind, EXT | TMPFS)
}
