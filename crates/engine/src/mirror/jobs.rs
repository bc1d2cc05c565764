//! The copier's jobs that are under way, with the memory they share.
//!
//! The copier has a pool of its own, so it cannot take the guests' buffers. A job
//! that finds no room in it waits until another one ends.
//!
//! Where the destination may be able to share the source's blocks, a copy tries
//! that first; refused, it is done again as a copy of bytes. A refusal that is not
//! about its range alone is the last one: nothing is tried in vain a second time.

use crate::io::Stored;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use sterna_core::mirror::{Job, JobId, JobKind, JobOutcome};

use super::comparison::Look;
use super::job::{Need, Run, Side, Step, Style};
use crate::buffer::Pool;
use crate::image::{ImageOp, ImageResult};
use crate::io::Errno;

/// The copier's buffers. The largest step of the copier's table is 12 MiB.
const POOL: usize = 12 << 20;

/// What comes of a job.
pub(super) enum Asked {
    /// It needs an operation done on one side.
    Operation(JobId, Side, ImageOp),
    /// What it waits for is the source now, or is not any more.
    OnSource(JobId, bool),
}

pub(super) struct Jobs {
    style: Style,
    /// The source's file, while the destination may be able to share its blocks.
    clone: Option<Arc<Stored>>,
    pool: Pool,
    runs: HashMap<JobId, Run>,
    /// Whether comparisons ask for what is empty.
    look: Look,
    /// Jobs that found no memory.
    waiting: VecDeque<Job>,
    /// What the run at hand needs; kept for its memory.
    needs: Vec<Need>,
}

impl Jobs {
    pub(super) fn new(style: Style, clone: Option<Arc<Stored>>) -> io::Result<Jobs> {
        Ok(Jobs {
            style,
            clone,
            pool: Pool::new(POOL)?,
            runs: HashMap::new(),
            look: Look::default(),
            waiting: VecDeque::new(),
            needs: Vec::new(),
        })
    }

    /// Whether no job is on its way through the images.
    pub(super) fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    /// How the destination is to be written.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Starts a job; what it needs goes to `asked`.
    pub(super) fn start(&mut self, job: Job, asked: &mut Vec<Asked>) {
        // What cannot be read is not to be shared either.
        let clone = self.clone.clone().filter(|_| job.bad.is_none());
        self.run(job, clone, true, asked);
    }

    /// `on_source`: what the mirror takes the job to wait for.
    fn run(
        &mut self,
        job: Job,
        clone: Option<Arc<Stored>>,
        on_source: bool,
        asked: &mut Vec<Asked>,
    ) {
        let asks = job.kind == JobKind::Compare && self.look.next(job.range.len);
        match Run::start(job, self.style, clone, asks, &self.pool, &mut self.needs) {
            Some(run) => {
                self.runs.insert(job.id, run);
                self.ask(job.id, on_source, asked);
            }
            None => self.waiting.push_back(job),
        }
    }

    fn ask(&mut self, id: JobId, was_on_source: bool, asked: &mut Vec<Asked>) {
        let operation = |(side, op)| Asked::Operation(id, side, op);
        asked.extend(self.needs.drain(..).map(operation));
        let is = self.runs.get(&id).is_some_and(Run::is_on_source);
        if is != was_on_source {
            asked.push(Asked::OnSource(id, is));
        }
    }

    /// An operation of a job has ended. Gives the job's outcome if that was all.
    pub(super) fn done(
        &mut self,
        id: JobId,
        side: Side,
        result: ImageResult,
        asked: &mut Vec<Asked>,
    ) -> Option<JobOutcome> {
        let run = self.runs.get_mut(&id)?;
        let was_on_source = run.is_on_source();
        match run.done(side, result, &mut self.needs) {
            Step::Going => {
                self.ask(id, was_on_source, asked);
                None
            }
            Step::Over(outcome) => {
                let found = self.runs.remove(&id).and_then(|run| run.found_empty());
                if let Some(any) = found {
                    self.look.found(any);
                }
                if let Some(job) = self.waiting.pop_front() {
                    self.start(job, asked);
                }
                Some(outcome)
            }
            Step::CannotClone(errno) => {
                self.copy_instead(id, errno, asked);
                None
            }
        }
    }

    /// The images cannot share blocks: at all, or only not in this range.
    fn copy_instead(&mut self, id: JobId, errno: Errno, asked: &mut Vec<Asked>) {
        if errno.0 != libc::EINVAL {
            self.clone = None;
        }
        if let Some(run) = self.runs.remove(&id) {
            self.run(run.into_job(), None, false, asked);
        }
    }
}
