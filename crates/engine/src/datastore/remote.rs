//! A datastore that is an export of an NBD server: one image, from its first
//! byte. The sidecar is in the trailer, if the disk leaves room for it.

use sterna_core::Bytes;
use sterna_nbd::{TransmissionFlags, Uri};

use super::DatastoreError;
use super::exchange::{Exchange, remote};
use super::visit::Visit;
use crate::image::ImageSpec;
use crate::image::nbd::MIN_BLOCK_MAX;
use crate::sidecar::trailer::{TRAILER_LEN, Trailer};

/// How much is asked about at a time: below 4 GiB, and aligned.
const STATUS_STEP: u64 = 1 << 30;
/// After so many questions an export is taken for one with data: a server that
/// answers in small steps would be asked for hours.
const STATUS_QUESTIONS: u32 = 8192;

#[derive(Clone, Debug)]
pub(super) struct Remote {
    uri: Uri,
    pub(super) capacity: u64,
}

impl Remote {
    /// Asks the server about the export, which must be writable.
    pub(super) fn open(uri: &Uri) -> Result<Remote, DatastoreError> {
        let exchange = Exchange::open(uri)?;
        let session = exchange.negotiated().session;
        if session.flags.has(TransmissionFlags::READ_ONLY) {
            return Err(remote(uri, "the export is read-only; export it writable"));
        }
        let minimum = session.block_sizes.minimum();
        if minimum > MIN_BLOCK_MAX {
            let reason = format!(
                "the export wants blocks of {minimum} bytes and disks have blocks of \
                 {MIN_BLOCK_MAX}; export it with smaller blocks"
            );
            return Err(remote(uri, reason));
        }
        if !session.flags.has(TransmissionFlags::SEND_FLUSH) {
            tracing::warn!(%uri, "the server offers no flush; what it holds in memory is lost with it");
        }
        Ok(Remote { uri: uri.clone(), capacity: session.size })
    }

    pub(super) fn image(&self) -> ImageSpec {
        ImageSpec::Nbd(self.uri.clone())
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// A connection.
    pub(super) fn visit(&self) -> Result<Visit, DatastoreError> {
        Ok(Visit::to_server(Exchange::open(&self.uri)?))
    }

    /// The size of the export now.
    pub(super) fn size_now(&self) -> Result<u64, DatastoreError> {
        Ok(Exchange::open(&self.uri)?.negotiated().session.size)
    }

    /// Whether the first `len` bytes are known to read as zeroes. `false` if
    /// the server cannot or will not tell.
    pub(super) fn reads_zero(&self, len: u64) -> Result<bool, DatastoreError> {
        let mut exchange = Exchange::open(&self.uri)?;
        let mut at = 0;
        for _ in 0..STATUS_QUESTIONS {
            if at >= len {
                return Ok(true);
            }
            let step = (len - at).min(STATUS_STEP) as u32;
            let Ok(Some(extents)) = exchange.status(at, step) else { return Ok(false) };
            if extents.iter().any(|extent| !extent.state.zero) {
                return Ok(false);
            }
            at += extents.iter().map(|extent| extent.len).sum::<u64>();
        }
        Ok(false)
    }

    /// Bytes of the first `len` that take space, if the server can tell.
    pub(super) fn allocated(&self, len: u64) -> Option<u64> {
        let mut exchange = Exchange::open(&self.uri).ok()?;
        let (mut at, mut allocated) = (0, 0);
        for _ in 0..STATUS_QUESTIONS {
            if at >= len {
                return Some(allocated);
            }
            let step = (len - at).min(STATUS_STEP) as u32;
            for extent in exchange.status(at, step).ok()?? {
                at += extent.len;
                allocated += if extent.state.hole { 0 } else { extent.len };
            }
        }
        None
    }

    pub(super) fn read_trailer(&self, at: u64) -> Result<Trailer, DatastoreError> {
        let mut trailer = [0; TRAILER_LEN];
        self.reaching(at + TRAILER_LEN as u64)?.read(at, &mut trailer)?;
        Ok(trailer)
    }

    /// Writes one trailer after the other, each durable before the next.
    pub(super) fn write_trailers(
        &self,
        at: u64,
        trailers: &[Trailer],
    ) -> Result<(), DatastoreError> {
        write(&mut self.reaching(at + TRAILER_LEN as u64)?, at, trailers)
    }

    /// A connection to an export that is still at least so long: a server that was started
    /// with a shorter file would only say that requests are invalid.
    fn reaching(&self, end: u64) -> Result<Exchange, DatastoreError> {
        let exchange = Exchange::open(&self.uri)?;
        let size = exchange.negotiated().session.size;
        if size < end {
            let reason = format!(
                "the export has {} ({size} bytes) now, and had {} bytes; export it with its \
                 former size",
                Bytes(size),
                self.capacity
            );
            return Err(remote(&self.uri, reason));
        }
        Ok(exchange)
    }

    /// Writes what comes of the trailer that is there, on the connection on which it was
    /// read: the next one may lead to another export.
    pub(super) fn change_trailer(
        &self,
        at: u64,
        change: &mut dyn FnMut(&Trailer) -> Result<Vec<Trailer>, DatastoreError>,
    ) -> Result<(), DatastoreError> {
        let mut exchange = self.reaching(at + TRAILER_LEN as u64)?;
        let mut old = [0; TRAILER_LEN];
        exchange.read(at, &mut old)?;
        write(&mut exchange, at, &change(&old)?)
    }

    /// Writes zeroes over the first `len` bytes, durably.
    pub(super) fn fill_zeroes(
        &self,
        len: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), DatastoreError> {
        let mut exchange = Exchange::open(&self.uri)?;
        let chunk = exchange.negotiated().session.block_sizes.maximum().min(1 << 20);
        let zeroes = vec![0; chunk as usize];
        let mut done = 0;
        while done < len {
            let count = (len - done).min(zeroes.len() as u64);
            exchange.write(done, &zeroes[..count as usize])?;
            done += count;
            if !progress(done) {
                return Err(DatastoreError::Stopped);
            }
        }
        exchange.flush()
    }
}

/// Each is durable before the next.
fn write(
    exchange: &mut Exchange,
    at: u64,
    trailers: &[Trailer],
) -> Result<(), DatastoreError> {
    for trailer in trailers {
        exchange.write(at, trailer)?;
        exchange.flush()?;
    }
    Ok(())
}
