//! A short visit to a device or an export: what it says of itself, and some of its bytes.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::DatastoreError;
use super::error::failed;
use super::exchange::Exchange;

/// The most that is read at once: what every server reads in one piece.
const READ_MAX: u64 = 64 << 10;

/// Devices are read in whole blocks of this size, past the page cache: it is a multiple of
/// the block size of every device.
const BLOCK: u64 = 4096;

/// A question about where data is covers less than 4 GiB.
const STATUS_STEP: u64 = 1 << 30;
/// So many questions about where data is, at most: somebody waits.
const STATUS_QUESTIONS: usize = 64;
/// So many stretches with data are told, at most: enough to pick some of.
const STRETCHES_MAX: usize = 4096;

/// Somebody who looks at a device or an export, and writes nothing that is not asked for.
pub struct Visit(Kind);

enum Kind {
    Server(Exchange),
    Device { path: PathBuf, file: File, size: u64 },
}

impl Visit {
    pub(super) fn to_server(exchange: Exchange) -> Visit {
        Visit(Kind::Server(exchange))
    }

    pub(super) fn to_device(path: &Path, size: u64) -> Result<Visit, DatastoreError> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(libc::O_DIRECT);
        let file = options.open(path).map_err(failed("open", path))?;
        Ok(Visit(Kind::Device { path: path.into(), file, size }))
    }

    /// How the server describes the export.
    pub fn description(&self) -> Option<&str> {
        match &self.0 {
            Kind::Server(exchange) => exchange.negotiated().description.as_deref(),
            Kind::Device { .. } => None,
        }
    }

    /// How many bytes the place has.
    pub fn size(&self) -> u64 {
        match &self.0 {
            Kind::Server(exchange) => exchange.negotiated().session.size,
            Kind::Device { size, .. } => *size,
        }
    }

    /// Reads a range, of 64 KiB at most, in one piece.
    pub fn read(&mut self, bytes: &Range<u64>) -> Result<Vec<u8>, DatastoreError> {
        let len = bytes.end.saturating_sub(bytes.start).min(READ_MAX);
        match &mut self.0 {
            Kind::Server(exchange) => {
                let mut read = vec![0; len as usize];
                exchange.read_at_once(bytes.start, &mut read)?;
                Ok(read)
            }
            Kind::Device { path, file, size } => {
                let range = bytes.start..bytes.start + len;
                read_blocks(file, &range, *size).map_err(failed("read", path))
            }
        }
    }

    /// Writes whole blocks of 4 KiB, and makes them durable as far as the place lets us. Only
    /// where nothing is that anybody needs.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DatastoreError> {
        match &mut self.0 {
            Kind::Server(exchange) => {
                exchange.write(offset, bytes)?;
                exchange.flush()
            }
            Kind::Device { path, .. } => {
                write_blocks(path, offset, bytes).map_err(failed("write to", path))
            }
        }
    }

    /// Where the first `len` bytes have data, as far as the server tells; of a device
    /// nothing is known.
    pub fn data(&mut self, len: u64) -> Data {
        let (mut at, mut stretches) = (0, Vec::new());
        if let Kind::Server(exchange) = &mut self.0 {
            for _ in 0..STATUS_QUESTIONS {
                if at >= len || stretches.len() >= STRETCHES_MAX {
                    break;
                }
                let step = (len - at).min(STATUS_STEP) as u32;
                let Ok(Some(extents)) = exchange.status(at, step) else { break };
                for extent in extents {
                    let end = (at + extent.len).min(len);
                    if !extent.state.zero && at < end {
                        stretches.push(at..end);
                    }
                    at += extent.len;
                }
            }
        }
        Data { stretches, is_all: at >= len }
    }
}

/// Where there is data; everything else that was asked about reads as zeroes.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Stretches with data.
    pub stretches: Vec<Range<u64>>,
    /// Everything was asked about.
    pub is_all: bool,
}

/// Writes whole blocks of a device, past the page cache.
fn write_blocks(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut memory = vec![0; bytes.len() + BLOCK as usize];
    let from = memory.as_ptr().align_offset(BLOCK as usize);
    let aligned = &mut memory[from..from + bytes.len()];
    aligned.copy_from_slice(bytes);
    file.write_all_at(aligned, offset)?;
    file.sync_data()
}

/// Reads a range of a device in whole blocks.
fn read_blocks(file: &File, bytes: &Range<u64>, size: u64) -> io::Result<Vec<u8>> {
    let start = bytes.start / BLOCK * BLOCK;
    let end = bytes.end.next_multiple_of(BLOCK).min(size);
    let len = end.saturating_sub(start) as usize;
    // The kernel wants the memory aligned as well.
    let mut memory = vec![0; len + BLOCK as usize];
    let from = memory.as_ptr().align_offset(BLOCK as usize);
    let aligned = &mut memory[from..from + len];
    file.read_exact_at(aligned, start)?;
    let skip = (bytes.start - start) as usize;
    let wanted = (bytes.end - bytes.start) as usize;
    let read = aligned.get(skip..skip + wanted);
    read.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
