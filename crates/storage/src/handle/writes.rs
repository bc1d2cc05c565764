//! Whether a datastore takes writes.
//!
//! Where writes hang (a file system that is frozen for a snapshot, or whose device is gone),
//! what is read is answered still. So that is asked apart from figures: who only wants to know
//! does not wait with those who write.

use std::sync::Arc;
#[cfg(test)]
use std::sync::mpsc;
use std::time::Duration;

use sterna_api::Result;
use sterna_engine::datastore::Datastore;

use super::{DatastoreHandle, FIGURE};

/// How long a write may take that is nothing but a question, until it is durable. The journal of a
/// disk that guests keep busy takes a second or two, and longer beside a large copy; whoever asks
/// for a change waits that long for a refusal.
const WRITE: Duration = Duration::from_secs(8);

impl DatastoreHandle {
    /// Refuses what somebody asks for now, if the datastore does not answer, or takes no
    /// writes: whoever touches it would wait with it, maybe for ever. What waits for it is
    /// seen to when it answers again.
    pub fn must_answer(&self) -> Result<()> {
        self.must_answer_within(WRITE)
    }

    /// The same of a datastore that may take so long for a write.
    pub fn must_answer_within(&self, limit: Duration) -> Result<()> {
        // Where even reads hang, nobody waits for a write.
        let datastore = self.must_answer_reads()?;
        self.is_written_to(datastore, limit)
    }

    /// The same of a datastore of which something is only read.
    pub(crate) fn must_answer_reads(&self) -> Result<Arc<Datastore>> {
        let datastore = self.open()?;
        if !datastore.holds_many() {
            // There is nothing to ask of it; but it may have let a question hang.
            self.answered(self.asker.ask_nothing(FIGURE))?;
            return Ok(datastore);
        }
        let asked = datastore.clone();
        let checked = self.answer_to(move || asked.check())?;
        checked.map_err(|error| self.refused(&error))?;
        Ok(datastore)
    }

    fn is_written_to(&self, datastore: Arc<Datastore>, limit: Duration) -> Result<()> {
        let written = self.writes.ask(limit, move || {
            // Before as well: nothing is written to what is not the datastore.
            datastore.check()?;
            datastore.touch();
            datastore.check()
        });
        self.answered(written)?.map_err(|error| self.refused(&error))
    }

    /// What is wrong with a datastore that has not answered a write in time, if that is so
    /// still.
    pub(super) fn takes_no_writes(&self) -> Option<String> {
        let span = self.writes.overdue_for()?;
        Some(format!("it does not answer writes (for {} s by now)", span.as_secs()))
    }

    /// It takes no writes for as long as this is kept.
    #[cfg(test)]
    pub(crate) fn freezes(&self) -> mpsc::Sender<()> {
        let (thaws, held) = mpsc::channel();
        drop(self.writes.ask(WRITE, move || held.recv().is_err()));
        thaws
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Instant, SystemTime};

    use super::*;
    use crate::handle::on_a_fresh_directory;

    #[test]
    fn a_datastore_whose_writes_hang_is_refused_and_tells_all_else_that_it_knows() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        handle.must_answer().unwrap();
        let thaws = handle.freezes();
        let refused = handle.must_answer().unwrap_err().message;
        assert!(refused.contains("does not answer writes"), "{refused}");
        assert!(handle.look().unwrap_err().contains("does not answer writes"));
        assert!(handle.inode().is_some(), "it only reads");
        handle.must_not_hang().unwrap();
        assert!(handle.still_open().is_some());
        drop(thaws);
        while handle.must_answer().is_err() {}
        handle.look().unwrap();
    }

    #[test]
    fn where_even_reads_hang_nobody_waits_for_a_write() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        handle.must_answer().unwrap();
        let (_release, held) = mpsc::channel::<()>();
        drop(handle.asker.ask(FIGURE, move || held.recv().is_err()));
        let asked = Instant::now();
        let refused = handle.must_answer().unwrap_err().message;
        assert!(refused.contains("it does not answer"), "{refused}");
        assert!(asked.elapsed() < WRITE, "{:?}", asked.elapsed());
    }

    #[test]
    fn nothing_is_written_to_what_is_not_the_datastore() {
        let scratch = tempfile::tempdir().unwrap();
        let handle = on_a_fresh_directory(&scratch);
        handle.must_answer().unwrap();
        let directory = scratch.path().join("images");
        let datastore = handle.get().unwrap();
        fs::rename(&directory, scratch.path().join("away")).unwrap();
        fs::create_dir(&directory).unwrap();
        let made = SystemTime::UNIX_EPOCH;
        File::open(&directory).unwrap().set_modified(made).unwrap();
        // It is found out between the opening and the question.
        assert!(handle.is_written_to(datastore, WRITE).is_err());
        assert_eq!(directory.metadata().unwrap().modified().unwrap(), made);
    }
}
