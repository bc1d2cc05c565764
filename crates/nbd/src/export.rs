//! What a server says about one export: the caller's answer to the handshake.

use crate::block_sizes::BlockSizes;
use crate::flags::TransmissionFlags;

/// An export, as its owner describes it to the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Size in bytes, at most [`crate::limits::EXPORT_SIZE_MAX`].
    pub size: u64,
    /// What it can do. The handshake adds and removes what the protocol demands, see
    /// [`TransmissionFlags::announced`].
    pub flags: TransmissionFlags,
    /// Size constraints.
    pub block_sizes: BlockSizes,
    /// Refuse clients that did not ask for the block sizes. Otherwise they are let in, and
    /// may send any offset and length: their [`Session`](crate::Session) has no minimum.
    pub block_sizes_required: bool,
    /// Whether `base:allocation` can be selected.
    pub allocation: bool,
    /// The export's own name, where it differs from the one that was asked for.
    pub name: Option<String>,
    /// A description for people.
    pub description: Option<String>,
}

impl Export {
    /// A writable export with the usual abilities of a disk: flush, FUA, trim, write
    /// zeroes, DF, and `base:allocation`.
    #[must_use]
    pub fn disk(size: u64) -> Self {
        Self {
            size,
            flags: TransmissionFlags::SEND_FLUSH
                | TransmissionFlags::SEND_FUA
                | TransmissionFlags::SEND_TRIM
                | TransmissionFlags::SEND_WRITE_ZEROES
                | TransmissionFlags::SEND_DF,
            block_sizes: BlockSizes::DEFAULT,
            block_sizes_required: false,
            allocation: true,
            name: None,
            description: None,
        }
    }
}

/// One line of a server's list of exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The name to ask for.
    pub name: String,
    /// A description for people; may be empty.
    pub description: String,
}
