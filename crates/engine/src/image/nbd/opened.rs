//! An export that was opened, and what is found out about it before a reactor has it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sterna_core::DiskId;
use sterna_core::durability::{Keeper, Witnesses};
use sterna_nbd::{TransmissionFlags, Uri};

use super::connect::{self, Connected};
use super::{MIN_BLOCK_MAX, NbdImage, examine};
use crate::account::{self, Line};
use crate::image::{Cx, Image, OpenError, Opened};
use crate::io::{Crew, ImageId};
use crate::sidecar::Identity;
use crate::sidecar::trailer::{self, Trailer};

/// An export that was opened and belongs to no reactor yet.
pub(crate) struct OpenedNbd {
    pub(super) uri: Uri,
    pub(super) crew: Arc<Crew>,
    pub(super) connected: Connected,
    pub(super) line: Option<Line>,
    /// The disk's size.
    pub(super) size: u64,
    /// Where its sidecar is on the export, and what it says.
    pub(super) sidecar: Option<(u64, Identity)>,
    /// The disk whose sidecar is where this disk's own bytes are: it was there before.
    pub(super) left: Option<DiskId>,
    /// What the image before this one is known by.
    pub(super) memory: Option<Memory>,
}

/// What an export is known by.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(super) sidecar: Option<(u64, Identity)>,
    pub(super) left: Option<DiskId>,
    pub(super) witnesses: Arc<Witnesses>,
}

impl OpenedNbd {
    /// Connects to the server. Blocks.
    pub(crate) fn open(uri: &Uri, crew: &Arc<Crew>) -> Result<OpenedNbd, OpenError> {
        let failed = |reason: String| OpenError::new(uri, reason);
        let connected =
            connect::connect(uri).map_err(|error| failed(error.to_string()))?;
        let session = &connected.negotiated.session;
        if session.flags.has(TransmissionFlags::READ_ONLY) {
            return Err(failed("the export is read-only; export it writable".into()));
        }
        let minimum = session.block_sizes.minimum();
        if minimum > MIN_BLOCK_MAX {
            return Err(failed(format!(
                "the export wants blocks of {minimum} bytes and disks have blocks of \
                 {MIN_BLOCK_MAX}; export it with smaller blocks"
            )));
        }
        let (uri, crew) = (uri.clone(), Arc::clone(crew));
        let size = connected.negotiated.session.size;
        let (line, sidecar, left, memory) = (None, None, None, None);
        Ok(OpenedNbd { uri, crew, connected, line, size, sidecar, left, memory })
    }
}

impl Opened for OpenedNbd {
    fn size(&self) -> u64 {
        self.connected.negotiated.session.size
    }

    fn keeper(&self) -> Option<Keeper> {
        let flags = self.connected.negotiated.session.flags;
        let address = account::address(&self.uri.to_string());
        let shares = flags.has(TransmissionFlags::CAN_MULTI_CONN);
        Some(Keeper::Server { address, shares })
    }

    fn keep(&mut self, line: Line) {
        self.line = Some(line);
    }

    fn belong(&mut self, disk: DiskId, size: u64) -> Result<(), OpenError> {
        self.size = size;
        let capacity = self.connected.negotiated.session.size;
        let own = trailer::offset(capacity, size);
        let Some(at) = own.or_else(|| trailer::offset(capacity, 0)) else {
            return Ok(());
        };
        let never = AtomicBool::new(false);
        let read = examine::read(&mut self.connected, &[examine::trailer(at)], &never);
        let read = read.map_err(|error| OpenError::new(&self.uri, error))?;
        let bytes = read.into_iter().next().flatten();
        let bytes = bytes.as_deref().and_then(|bytes| <&Trailer>::try_from(bytes).ok());
        match bytes.map(trailer::read) {
            Some(Ok(found)) if own.is_none() => {
                self.left = Some(found.id);
                Ok(())
            }
            Some(Ok(found)) if found.id != disk => {
                let name = found.name;
                let reason = format!("the export has the image of disk {name}");
                Err(OpenError::new(&self.uri, reason))
            }
            Some(Ok(found)) => {
                self.sidecar = Some((at, found));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn recall(&mut self, memory: Memory) {
        self.memory = Some(memory);
    }

    fn start(self: Box<Self>, cx: &mut Cx, id: ImageId) -> Box<dyn Image> {
        let image = NbdImage::start(*self, cx, id);
        Box::new(image)
    }
}
