//! What the daemon says of itself in its log, for those who want to keep it.
//!
//! The log's lines say what the daemon decided, to what, and why. [`Notes`] hands those that
//! are for operators (information, warnings and errors of Sterna itself) to whoever listens,
//! besides the log. **Nobody waits**: the listener must take a note at once. Before there is
//! a listener, a few notes are kept for it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use sterna_os::{clock, lock};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// So many notes wait for a listener: those of a start.
const WAITING_MOST: usize = 200;

/// A line of the log, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When (milliseconds since 1970).
    pub at_ms: u64,
    /// Whether nothing is wrong: it is no warning and no error.
    pub ok: bool,
    /// What it says.
    pub message: String,
    /// Of what, and with which figures: names and values.
    pub fields: Vec<(&'static str, String)>,
}

type Listener = Box<dyn FnMut(Note) + Send>;

/// The way from the log to whoever keeps notes. Cheap to clone.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    listener: Option<Listener>,
    waiting: VecDeque<Note>,
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").finish_non_exhaustive()
    }
}

impl Notes {
    /// Hands over what waits, and each note from now on. `listener` must neither wait nor
    /// log.
    pub fn listen(&self, mut listener: impl FnMut(Note) + Send + 'static) {
        let mut state = lock(&self.0);
        state.waiting.drain(..).for_each(&mut listener);
        state.listener = Some(Box::new(listener));
    }

    fn take(&self, note: Note) {
        let mut state = lock(&self.0);
        if let Some(listener) = &mut state.listener {
            listener(note);
        } else if state.waiting.len() < WAITING_MOST {
            state.waiting.push_back(note);
        }
    }
}

impl<S: Subscriber> Layer<S> for Notes {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let (level, target) = (*metadata.level(), metadata.target());
        // What the engine does is told by whoever had it done; what goes wrong there, is not.
        let least =
            if target.starts_with("sterna_engine") { Level::WARN } else { Level::INFO };
        if level > least || !target.starts_with("sterna") {
            return;
        }
        let mut parts = Parts::default();
        event.record(&mut parts);
        self.take(Note {
            at_ms: clock::now_ms(),
            ok: *metadata.level() == Level::INFO,
            message: parts.message,
            fields: parts.fields,
        });
    }
}

/// The parts of an event.
#[derive(Default)]
struct Parts {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Parts {
    fn put(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, text)),
        }
    }
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, format!("{value:.3}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn what_was_said_before_somebody_listened_is_heard_and_details_are_not() {
        let notes = Notes::default();
        let subscriber = tracing_subscriber::registry().with(notes.clone());
        let (sender, heard) = mpsc::channel();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "sterna_moves", disk = "db", bytes = 5, "disk moved");
            notes.listen(move |note| drop(sender.send(note)));
            tracing::debug!(target: "sterna_moves", "a detail");
            tracing::warn!(target: "hyper", "somebody else's");
            tracing::info!(target: "sterna_engine::disk", "disk attached");
            tracing::warn!(target: "sterna_storage", error = %"EIO", "datastore offline");
        });
        let first = heard.recv().unwrap();
        assert_eq!((first.message.as_str(), first.ok), ("disk moved", true));
        let fields = [("disk", "db".to_owned()), ("bytes", "5".to_owned())];
        assert_eq!(first.fields, fields);
        let second = heard.recv().unwrap();
        assert_eq!((second.message.as_str(), second.ok), ("datastore offline", false));
        assert!(heard.try_recv().is_err());
    }
}
