//! What a monitor says unasked, as far as it matters to us.

use serde_json::Value;

/// Something happened. All of these are hints: what is true is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job became something else.
    JobChanged {
        /// Which job.
        id: String,
    },
    /// A guest that is sent, or received, is at another point.
    SendChanged,
    /// The VM shuts down.
    Shutdown,
    /// The VM was reset. Its disks stay what they are.
    Reset,
    /// Anything else, newer QEMU's new events included.
    Other,
}

impl Event {
    /// The event of a name.
    pub(super) fn new(name: &str, data: &Value) -> Event {
        let of = |key: &str| data[key].as_str().map(str::to_owned);
        let job = match name {
            "JOB_STATUS_CHANGE" => of("id"),
            "BLOCK_JOB_READY"
            | "BLOCK_JOB_COMPLETED"
            | "BLOCK_JOB_CANCELLED"
            | "BLOCK_JOB_ERROR" => of("device"),
            "MIGRATION" => return Event::SendChanged,
            "SHUTDOWN" => return Event::Shutdown,
            "RESET" => return Event::Reset,
            _ => None,
        };
        job.map_or(Event::Other, |id| Event::JobChanged { id })
    }
}
