//! What the guest is told of its disk: the features, and the configuration space.

use vhost::vhost_user::message::VhostUserVirtioFeatures;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_MQ,
    VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_TOPOLOGY, VIRTIO_BLK_F_WRITE_ZEROES,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{
    VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC,
};

use super::{QUEUES_MAX, RANGES_MAX, SEGMENTS_MAX};
use crate::export::MARK_PIECE;

/// Sectors, in which virtio counts.
pub(super) const SECTOR: u64 = 512;

/// The part of a page that begins one, as a power of two of sectors: 4 KiB.
const PAGE_EXPONENT: u8 = 3;

/// What we offer. The in-flight area and the like are negotiated apart.
pub(super) fn features() -> u64 {
    let blk = [
        VIRTIO_BLK_F_SEG_MAX,
        VIRTIO_BLK_F_BLK_SIZE,
        VIRTIO_BLK_F_TOPOLOGY,
        VIRTIO_BLK_F_FLUSH,
        VIRTIO_BLK_F_MQ,
        VIRTIO_BLK_F_DISCARD,
        VIRTIO_BLK_F_WRITE_ZEROES,
        VIRTIO_F_VERSION_1,
        VIRTIO_RING_F_EVENT_IDX,
        VIRTIO_RING_F_INDIRECT_DESC,
    ];
    let ours = blk.into_iter().fold(0, |all, bit| all | 1 << bit);
    ours | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()
}

/// Whether a feature is among those that the guest's driver took.
pub(super) fn has(features: u64, bit: u32) -> bool {
    features & 1 << bit != 0
}

/// The configuration space (`struct virtio_blk_config`) of a disk of so many bytes.
pub(super) fn space(size: u64) -> Vec<u8> {
    let marks = u32::try_from(MARK_PIECE / SECTOR).unwrap_or(u32::MAX);
    let ranges = RANGES_MAX as u32;
    let mut space = Vec::with_capacity(60);
    space.extend((size / SECTOR).to_le_bytes());
    space.extend(0u32.to_le_bytes()); // size_max: not offered
    space.extend((SEGMENTS_MAX as u32 - 2).to_le_bytes());
    space.extend([0; 4]); // geometry: not offered
    space.extend((SECTOR as u32).to_le_bytes());
    space.extend([PAGE_EXPONENT, 0]); // physical block, alignment
    space.extend((1u16 << PAGE_EXPONENT).to_le_bytes()); // least I/O
    space.extend(0u32.to_le_bytes()); // best I/O: as the guest likes
    space.extend([1, 0]); // write-back, unused
    space.extend(QUEUES_MAX.to_le_bytes());
    space.extend(marks.to_le_bytes()); // discard: sectors, ranges, alignment
    space.extend(ranges.to_le_bytes());
    space.extend((1u32 << PAGE_EXPONENT).to_le_bytes());
    space.extend(marks.to_le_bytes()); // zeroes: sectors, ranges, may unmap
    space.extend(ranges.to_le_bytes());
    space.extend([1, 0, 0, 0]);
    space
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_says_how_large_the_disk_is() {
        let space = space(40 << 20);
        assert_eq!(space.len(), 60, "as long as virtio 1.1 has it");
        assert_eq!(space[..8], (40u64 << 11).to_le_bytes());
        assert_eq!(space[20..24], 512u32.to_le_bytes());
    }
}
