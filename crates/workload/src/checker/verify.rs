//! The reckoning: read the whole disk and ask for everything that was promised.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use sterna_nbd::{Command, Uri};

use super::ledger::Ledger;
use super::model::Wrong;
use crate::connection::{self, Reads};

/// What to verify.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The export.
    pub uri: Uri,
    /// The ledger.
    pub log: PathBuf,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The seed of the contents.
    pub seed: u64,
    /// Writes in the ledger.
    pub writes: u32,
    /// Blocks that were read.
    pub blocks: u64,
    /// Blocks of which the ledger promises something.
    pub promised: u64,
    /// Blocks that were in doubt before (a write unacknowledged, or a trim).
    pub doubts: usize,
    /// How many blocks are wrong.
    pub wrong: u64,
}

impl Verdict {
    /// The verdict as one line of JSON.
    pub fn json(&self) -> String {
        format!(
            "{{\"seed\":{},\"writes\":{},\"blocks\":{},\"promised\":{},\"doubts\":{},\
             \"wrong\":{}}}",
            self.seed, self.writes, self.blocks, self.promised, self.doubts, self.wrong
        )
    }
}

/// Bytes read at once, and how many such reads are outstanding.
const CHUNK: u64 = 256 << 10;
const DEPTH: usize = 8;

/// Reads everything back. Every wrong block is told.
pub fn verify(
    options: &VerifyOptions,
    tell: &mut dyn FnMut(&Wrong),
) -> anyhow::Result<Verdict> {
    let (_, header, mut model, writes) = Ledger::open(&options.log)?;
    let mut link = connection::connect(&options.uri, Reads::Kept)
        .with_context(|| format!("connect to {}", options.uri))?;
    if link.size() < header.size {
        bail!("the disk had {} bytes and has {}", header.size, link.size());
    }
    let block = u64::from(header.block);
    let mut verdict = Verdict {
        seed: header.seed,
        writes,
        blocks: model.blocks(),
        promised: model.written(),
        doubts: model.doubts(),
        wrong: 0,
    };
    let end = model.blocks() * block;
    let (mut next, mut answers) = (0, Vec::new());
    while next < end || link.outstanding() > 0 {
        while next < end && link.outstanding() < DEPTH {
            let len = CHUNK.min(end - next) as u32;
            link.send(next, Command::Read { offset: next, len, df: false }, |_| {});
            next += u64::from(len);
        }
        let mut live = [(0, &mut link)];
        if let Some((_, error)) =
            connection::pump(&mut live, Duration::from_secs(1), &mut answers).pop()
        {
            return Err(error).context("the connection broke");
        }
        for (_, answer) in answers.drain(..) {
            let data = answer
                .result
                .map_err(|error| anyhow::anyhow!("a read was answered with {error}"))?;
            let mut wrong = Vec::new();
            model.judge(answer.cookie / block, &data, &mut wrong);
            verdict.wrong += wrong.len() as u64;
            wrong.iter().for_each(&mut *tell);
        }
    }
    Ok(verdict)
}
