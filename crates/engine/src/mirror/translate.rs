//! What the mirror and the disk call the same things.

use sterna_core::ByteRange;
use sterna_core::mirror::{RequestId, RequestKind};

use crate::image::{Image, ImageOp};

/// Whether an image can take blocks over from another one's file.
pub(super) fn can_share(image: &dyn Image) -> bool {
    image.file().is_some()
}

/// Which of a disk's requests a name belongs to.
pub(super) fn number(id: RequestId) -> u32 {
    id.0 as u32
}

/// What the mirror has to know of an operation.
pub(super) fn describe(op: &ImageOp) -> (RequestKind, ByteRange) {
    let range = |offset: u64, len: u64| ByteRange::new(offset, len);
    match op {
        ImageOp::Read { offset, buf } => {
            (RequestKind::Read, range(*offset, buf.len() as u64))
        }
        ImageOp::Write { offset, buf, .. } => {
            (RequestKind::Write, range(*offset, buf.len() as u64))
        }
        ImageOp::Zero { offset, len, .. } | ImageOp::Clone { offset, len, .. } => {
            (RequestKind::Write, range(*offset, *len))
        }
        ImageOp::Flush => (RequestKind::Flush, range(0, 0)),
        ImageOp::Extents { offset, len, .. } | ImageOp::Cache { offset, len } => {
            (RequestKind::Read, range(*offset, *len))
        }
    }
}
