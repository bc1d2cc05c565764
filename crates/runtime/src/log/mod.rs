//! The way out of the log: one thread owns it, and nobody else ever waits for it.
//!
//! **Rule.** Whoever has something to log hands over a whole line and goes on. The line
//! waits in a queue of [`BYTES_MOST`], which the writer empties. Nothing that becomes of
//! the log (it is full, its reader is gone or stands still, it takes nothing at the moment)
//! reaches the one who logs: no error, no panic, no waiting. Lines that cannot be written
//! are lost, and counted. The count is in the log before the next line that can be written,
//! and until then a warning of `sterna status`.
//!
//! **Special cases.** A pipe that somebody has made non-blocking takes nothing at times: it
//! is tried again. A line that was written half is ended before the next one begins. What
//! a thread says as it panics goes the same way ([`Log::take_panics`]): the program ends
//! then, and a log that hangs must not keep it from that.
//!
//! **Failures.** The writer may hang for ever. At the end the log is waited for, but not for
//! long ([`Log::settle`]); what it has not taken then is lost.

mod panics;
mod queue;

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use self::queue::Queue;
pub use self::queue::State;

/// Lines wait in so much memory: some thousand lines, more than a daemon says in an hour
/// in which nothing is wrong.
const BYTES_MOST: usize = 1 << 20;

/// How often a log that takes nothing is tried again where nothing new is to be said.
const AGAIN: Duration = Duration::from_secs(5);

/// How soon one is tried again that takes nothing at the moment.
const SOON: Duration = Duration::from_millis(50);

/// How long the last lines of a daemon that stops may take.
pub const LAST_LINES: Duration = Duration::from_secs(1);

/// A log. Cheap to clone; each `write` is a line.
#[derive(Clone, Debug)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something to write, or nothing any more.
    changed: Condvar,
}

impl Log {
    /// The log on stderr.
    pub fn to_stderr() -> io::Result<Log> {
        Log::to(Stderr)
    }

    /// A log that goes there.
    pub fn to(sink: impl Write + Send + 'static) -> io::Result<Log> {
        let queue = Mutex::new(Queue::new(BYTES_MOST));
        let log = Log(Arc::new(Shared { queue, changed: Condvar::new() }));
        let shared = log.0.clone();
        let writer = thread::Builder::new().name("sterna-log".into());
        writer.spawn(move || shared.write_for_ever(sink))?;
        Ok(log)
    }

    /// Says something, at once or never.
    pub fn say(&self, line: &[u8]) {
        let mut queue = self.0.lock();
        queue.push(line);
        self.0.changed.notify_all();
    }

    /// How it fares.
    pub fn state(&self) -> State {
        self.0.lock().state(Instant::now())
    }

    /// Waits until everything is written, but no longer than that.
    pub fn settle(&self, patience: Duration) {
        let is_busy = |queue: &mut Queue| !queue.is_settled();
        // Whether it was in time is of no use to anybody.
        drop(self.0.changed.wait_timeout_while(self.0.lock(), patience, is_busy));
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.say(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole between any two statements.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_for_ever(&self, mut sink: impl Write) {
        let mut torn = false;
        loop {
            let (note, line) = self.next();
            let mut written = Ok(());
            if let Some((count, text)) = note {
                let text = format!("{text}\n");
                written = write_line(&mut sink, text.as_bytes(), &mut torn);
                match &written {
                    Ok(()) => self.lock().told(count),
                    Err(error) => self.lock().not_told(error.to_string()),
                }
            }
            let Some(line) = line else { continue };
            written = written.and_then(|()| write_line(&mut sink, &line, &mut torn));
            self.lock().written(written.map_err(|error| error.to_string()));
            self.changed.notify_all();
        }
    }

    /// Waits for what is to be written next: that lines were lost, and a line.
    fn next(&self) -> (Option<(u64, String)>, Option<Vec<u8>>) {
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.take(Instant::now()) {
                return (queue.note(), Some(line));
            }
            // What is not told yet is tried at once, and then at times.
            match (queue.note(), queue.is_failing()) {
                (Some(note), false) => return (Some(note), None),
                (Some(note), true) => {
                    let more = |queue: &mut Queue| queue.is_empty();
                    let woken = self.changed.wait_timeout_while(queue, AGAIN, more);
                    let (still, waited) = woken.unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() {
                        return (Some(note), None);
                    }
                    queue = still;
                }
                (None, _) => {
                    let woken = self.changed.wait(queue);
                    queue = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// Writes a line whole, or says why that cannot be. `torn`: half of one is there already,
/// and is ended first.
fn write_line(sink: &mut impl Write, line: &[u8], torn: &mut bool) -> io::Result<()> {
    if *torn {
        write_all(sink, b"\n", torn)?;
    }
    write_all(sink, line, torn)
}

fn write_all(sink: &mut impl Write, bytes: &[u8], torn: &mut bool) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        match sink.write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                left = left.get(count..).unwrap_or_default();
                *torn = !left.is_empty();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(SOON);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The process's own, without the lock of std's, which somebody may hold who hangs.
#[derive(Debug)]
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(rustix::stdio::stderr(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
