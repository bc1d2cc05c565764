//! The words of an account, in memory that a kill leaves.
//!
//! The first is of what clients are still to be told: 0 nothing, 1 the server was away, 2 a
//! daemon ended, 3 it is not known, 4 the server came back in an older state, 5 a flush
//! failed, 6 the file system was mounted anew, 7 nobody heard how a flush ended.
//!
//! Each of the next 15 is a line: 0 where it is free. Of a server bit 0 is set, bit 1 if writes
//! are unflushed, bit 2 if the server's connections share one cache, and above them are 29 bits
//! of the checksum of the server's address. Of a file or device bit 0 is clear and bit 2 set, and
//! the rest is the same of what it is known by: an earlier version takes such a line for none.
//!
//! The next one has the number of clients in its lower half, and in its upper half how many of
//! them are still to be told. The last one has a bit for each line whose writes are in doubt, the
//! first line's lowest. An earlier version had no such words.
//!
//! A word has its value in its lower half, and in its upper half the crc32c of the account's
//! generation (u64), the word's place (u64) and the value.

use std::io;
use std::sync::atomic::Ordering;

use sterna_core::durability::{Clients, Keeper, Line, Loss, Past};

use crate::memory::{Home, Mapped, Memory, Name};

/// Images at a server that a disk has at once: its own, the copy's, and those that are
/// still being closed.
pub(super) const LINES: u32 = 15;
const CLIENTS: usize = 1 + LINES as usize;
const DOUBTS: usize = CLIENTS + 1;
const WORDS: usize = DOUBTS + 1;
/// A page of memory.
const LEN: u64 = 4096;

const IN_USE: u32 = 1;
const UNFLUSHED: u32 = 1 << 1;
const SHARES: u32 = 1 << 2;
/// Bits below those of the address.
const FLAGS: u32 = 3;

/// The words of one account.
#[derive(Debug)]
pub(super) struct Words {
    generation: u64,
    mapped: Mapped,
}

impl Words {
    /// New ones, without a line.
    pub(super) fn create(
        generation: u64,
        owed: Option<Loss>,
        clients: Clients,
        home: Option<&Home>,
    ) -> io::Result<Words> {
        let memory = Memory::create(Name::Account(generation), LEN, home)?;
        let words = Words { generation, mapped: memory.map(WORDS)? };
        words.set_owed(owed, clients);
        (0..LINES).for_each(|at| words.free_line(at));
        words.set_doubts(0);
        Ok(words)
    }

    /// Those that a process has left.
    pub(super) fn open(generation: u64) -> Option<Words> {
        let memory = Memory::open(Name::Account(generation), LEN)?;
        Some(Words { generation, mapped: memory.map(WORDS).ok()? })
    }

    /// What they say, if all are whole.
    pub(super) fn read(&self) -> Option<Past> {
        let owed = match self.value(0)? {
            0 => None,
            1 => Some(Loss::ServerAway),
            2 => Some(Loss::DaemonEnded),
            3 => Some(Loss::Unknown),
            4 => Some(Loss::WentBack),
            5 => Some(Loss::FlushFailed),
            6 => Some(Loss::MountedAnew),
            7 => Some(Loss::FlushUnheard),
            _ => return None,
        };
        let (mut lines, doubts) = (Vec::new(), self.doubts()?);
        for at in 0..LINES {
            let value = self.value(1 + at as usize)?;
            let (address, shares) = (value >> FLAGS, value & SHARES != 0);
            let keeper = match value & IN_USE != 0 {
                true => Keeper::Server { address, shares },
                false if shares => Keeper::Kernel { address },
                false => continue,
            };
            let (unflushed, doubtful) = (value & UNFLUSHED != 0, doubts & 1 << at != 0);
            lines.push(Line { keeper, unflushed, doubtful });
        }
        Some(Past::Account { owed, clients: self.clients()?, lines })
    }

    /// The clients that are there, or may come back.
    pub(super) fn clients(&self) -> Option<Clients> {
        let value = self.value_or_none(CLIENTS)?;
        Some(Clients { all: value & Clients::MOST, owed: value >> 16 })
    }

    /// The lines whose writes are in doubt, a bit each.
    pub(super) fn doubts(&self) -> Option<u32> {
        self.value_or_none(DOUBTS)
    }

    pub(super) fn set_doubts(&self, lines: u32) {
        self.store(DOUBTS, self.sealed(DOUBTS, lines));
    }

    /// The lines that are not free, a bit each.
    pub(super) fn lines_in_use(&self) -> u32 {
        let is_free = |at: &u32| self.value(1 + *at as usize) == Some(0);
        let used = (0..LINES).filter(|at| !is_free(at));
        used.fold(0, |bits, at| bits | 1 << at)
    }

    /// Whether they say anything that somebody has to know.
    pub(super) fn has_open(&self) -> bool {
        match self.read() {
            Some(Past::Account { owed, lines, .. }) => {
                owed.is_some() || lines.iter().any(|line| line.unflushed)
            }
            _ => true,
        }
    }

    /// Whether clients are to be told of something, or may have to be.
    pub(super) fn owes(&self) -> bool {
        match self.read() {
            Some(Past::Account { owed, lines, .. }) => {
                owed.is_some() || lines.iter().any(|line| line.doubtful)
            }
            _ => true,
        }
    }

    pub(super) fn set_owed(&self, loss: Option<Loss>, clients: Clients) {
        // First, so that a kill between the two leaves no loss without those to be told.
        let all = clients.all.min(Clients::MOST);
        let value = clients.owed.min(Clients::MOST) << 16 | all;
        self.store(CLIENTS, self.sealed(CLIENTS, value));
        let value = match loss {
            None => 0,
            Some(Loss::ServerAway) => 1,
            Some(Loss::DaemonEnded) => 2,
            Some(Loss::Unknown) => 3,
            Some(Loss::WentBack) => 4,
            Some(Loss::FlushFailed) => 5,
            Some(Loss::MountedAnew) => 6,
            Some(Loss::FlushUnheard) => 7,
        };
        self.store(0, self.sealed(0, value));
    }

    /// The word of a line.
    pub(super) fn sealed_line(&self, at: u32, keeper: Keeper, unflushed: bool) -> u64 {
        let mut value = match keeper {
            Keeper::Server { address, shares } => {
                address << FLAGS | IN_USE | if shares { SHARES } else { 0 }
            }
            Keeper::Kernel { address } => address << FLAGS | SHARES,
        };
        value |= if unflushed { UNFLUSHED } else { 0 };
        self.sealed(1 + at as usize, value)
    }

    pub(super) fn store_line(&self, at: u32, word: u64) {
        self.store(1 + at as usize, word);
    }

    pub(super) fn free_line(&self, at: u32) {
        self.store_line(at, self.sealed(1 + at as usize, 0));
    }

    fn store(&self, index: usize, word: u64) {
        // In the order of the program: a kill cuts it off anywhere.
        self.mapped.words()[index].store(word.to_le(), Ordering::SeqCst);
    }

    /// The value of a word that an earlier version has not written: nothing was counted.
    fn value_or_none(&self, index: usize) -> Option<u32> {
        match self.mapped.words()[index].load(Ordering::SeqCst) {
            0 => Some(0),
            _ => self.value(index),
        }
    }

    /// A word's value, if it is whole.
    fn value(&self, index: usize) -> Option<u32> {
        let word = u64::from_le(self.mapped.words()[index].load(Ordering::SeqCst));
        // The lower half: the truncation is meant.
        let value = word as u32;
        (word == self.sealed(index, value)).then_some(value)
    }

    fn sealed(&self, index: usize, value: u32) -> u64 {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&(index as u64).to_le_bytes());
        bytes[16..].copy_from_slice(&value.to_le_bytes());
        u64::from(crc32c::crc32c(&bytes)) << 32 | u64::from(value)
    }
}

/// What the address of a server, or what a file is known by, comes to in a line.
pub(crate) fn address(of: &str) -> u32 {
    crc32c::crc32c(of.as_bytes()) >> FLAGS
}
