//! A running guest that goes from one QEMU to another on the same computer.
//!
//! ```text
//! receive (the other) ── send ──> under way ──> sent ── go_on (the other) ── quit
//!                                     └── give_up, or it fails ──> stayed
//! ```
//!
//! **Only one runs it.** The other QEMU is told before anything is sent that the guest is
//! to stand still when it has come, and to leave the disks alone until it is to go on. So
//! nothing that either of them does by itself has the guest run twice: who calls
//! [`Direct::go_on`] decides where it runs.
//!
//! QEMU sends first and the guest stands still only for the rest (`precopy`). Never the
//! other way round (`postcopy`): if one of the two ended then, the guest would be in
//! neither. It is not slowed down to get the rest small (`auto-converge`). There is no
//! stop before the rest is sent (`pause-before-switchover`) either: what would be decided
//! there is decided when all has come, and the guest stands still once only.

use crate::Run;
use crate::direct::{Direct, optional};
use crate::qmp::{
    CancelSend, Capability, Continue, QmpError, QueryCapabilities, QuerySend, Quit,
    Receive, Send, SendInfo, SetCapabilities, SetSendSpeed, Stop,
};

/// What both must be told, as far as they know of it: what comes to pass is said as it
/// does, the source learns whether all has come, and it goes the safe way.
const BOTH: [(&str, bool); 5] = [
    ("events", true),
    ("return-path", true),
    ("postcopy-ram", false),
    ("auto-converge", false),
    ("pause-before-switchover", false),
];

/// The disks stay the source's until the guest is to go on here.
const RECEIVER: (&str, bool) = ("late-block-activate", true);

/// How far a guest is.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// Nothing was begun.
    Nothing,
    /// It is under way.
    UnderWay(SentBytes),
    /// All has been sent. The guest stands still, and stood still for so long, in
    /// milliseconds.
    All(SentBytes, f64),
    /// It was given up, or failed; why, if it failed.
    Stayed(Option<String>),
}

/// How it goes with the guest that a QEMU has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guest {
    /// It stands still, as one does that has come; or somebody has it stand still.
    Still,
    /// It runs.
    Runs,
    /// In QEMU's word: it has run here, and something has befallen it since; or that had
    /// befallen it before it came.
    Otherwise(String),
}

/// What is where a guest is to come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// A QEMU that waits for a guest, and was not told of this one.
    Idle,
    /// One that waits for it, or takes it in.
    Awaits,
    /// One that has a guest which was sent to it.
    Has(Guest),
    /// One that has a guest which was started there.
    Stranger(Guest),
}

/// How much has been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentBytes {
    /// Bytes.
    pub done: u64,
    /// Bytes still to be sent, as far as is known.
    pub left: u64,
    /// Bytes per second.
    pub rate: f64,
    /// How many times the memory was gone through.
    pub passes: u64,
}

impl Direct {
    /// Why the guest cannot be sent, in QEMU's words; nothing if it can.
    pub async fn unsendable(&self) -> Result<Vec<String>, QmpError> {
        Ok(self.monitor().call(&QuerySend {}).await?.blocked_reasons)
    }

    /// Whether it waits for a guest, and was told of none.
    pub async fn awaits(&self) -> Result<bool, QmpError> {
        let info = self.monitor().call(&QuerySend {}).await?;
        let is_told = info.status.is_some_and(|it| it != "none");
        let run = self.run().await?;
        Ok(run.word == WAITS && !is_told && info.socket_address.is_empty())
    }

    /// Has it wait for a guest at a socket, and hold that still when it has come.
    pub async fn receive(&self, socket: &str) -> Result<(), QmpError> {
        self.monitor().call(&Stop {}).await?;
        let known = self.set(BOTH.iter().chain([&RECEIVER])).await?;
        if !known.iter().any(|name| name == RECEIVER.0) {
            return Err(QmpError::Refused {
                command: "migrate-set-capabilities",
                class: "TooOld".into(),
                description: format!("this QEMU does not know {}", RECEIVER.0),
            });
        }
        self.monitor().call(&Receive { uri: format!("unix:{socket}") }).await.map(drop)
    }

    /// Begins to send the guest to who waits at a socket, at so many bytes per second.
    pub async fn send(&self, socket: &str, speed: u64) -> Result<(), QmpError> {
        self.set(BOTH.iter()).await?;
        self.monitor().call(&SetSendSpeed { max_bandwidth: speed }).await?;
        self.monitor().call(&Send { uri: format!("unix:{socket}") }).await.map(drop)
    }

    /// Says which capabilities there are, after those among them that QEMU knows were set.
    async fn set(
        &self,
        wanted: impl Iterator<Item = &(&'static str, bool)>,
    ) -> Result<Vec<String>, QmpError> {
        let known = self.monitor().call(&QueryCapabilities {}).await?;
        let known: Vec<String> = known.into_iter().map(|it| it.capability).collect();
        let those = wanted.filter(|(name, _)| known.iter().any(|it| it == name));
        let capabilities = those
            .map(|(name, state)| Capability {
                capability: (*name).to_owned(),
                state: *state,
            })
            .collect();
        self.monitor().call(&SetCapabilities { capabilities }).await?;
        Ok(known)
    }

    /// How far the guest is that is sent.
    pub async fn sent(&self) -> Result<Sent, QmpError> {
        Ok(read(self.monitor().call(&QuerySend {}).await?))
    }

    /// Gives it up, if it still can be; whether it could is then to be looked at.
    pub async fn give_up_sending(&self) -> Result<(), QmpError> {
        optional(self.monitor().call(&CancelSend {}).await).map(drop)
    }

    /// How it goes with a guest that was to come here, at this socket. What was sent is
    /// asked for first: in between it may come, and not go.
    pub async fn stand(&self, socket: &str) -> Result<Stand, QmpError> {
        let info = self.monitor().call(&QuerySend {}).await?;
        Ok(stand(self.run().await?, &info, socket))
    }

    /// Has the guest run here.
    pub async fn go_on(&self) -> Result<(), QmpError> {
        self.monitor().call(&Continue {}).await.map(drop)
    }

    /// Has QEMU end, with whatever is in it.
    pub async fn quit(&self) -> Result<(), QmpError> {
        match self.monitor().call(&Quit {}).await {
            Err(QmpError::Gone) => Ok(()),
            answer => answer.map(drop),
        }
    }
}

/// QEMU's word for one that waits for a guest, also while that comes.
const WAITS: &str = "inmigrate";

/// And for one whose guest was told to stand still: so does one that has just come.
pub const PAUSED: &str = "paused";

fn stand(run: Run, info: &SendInfo, socket: &str) -> Stand {
    let is_at = |path: Option<&String>| path.is_some_and(|path| path == socket);
    let is_here = info.socket_address.iter().any(|at| is_at(at.path.as_ref()));
    let has_status = info.status.as_ref().is_some_and(|it| it != "none");
    let guest = match run.word.as_str() {
        _ if run.running => Guest::Runs,
        // Before QEMU 4.0 it does not say where it waits.
        WAITS if is_here || has_status && info.socket_address.is_empty() => {
            return Stand::Awaits;
        }
        WAITS => return Stand::Idle,
        PAUSED => Guest::Still,
        _ => Guest::Otherwise(run.word),
    };
    match is_here || has_status {
        true => Stand::Has(guest),
        false => Stand::Stranger(guest),
    }
}

fn read(info: SendInfo) -> Sent {
    let ram = info.ram.unwrap_or_default();
    let bytes = SentBytes {
        done: ram.transferred,
        left: ram.remaining,
        rate: ram.mbps * 1e6 / 8.0,
        passes: ram.dirty_sync_count,
    };
    match info.status.as_deref() {
        None | Some("none") => Sent::Nothing,
        Some("completed") => Sent::All(bytes, info.downtime.unwrap_or(0.0)),
        Some("failed") => {
            let unsaid = || "QEMU does not say why".to_owned();
            Sent::Stayed(Some(info.error_desc.unwrap_or_else(unsaid)))
        }
        Some("cancelled") => Sent::Stayed(None),
        Some(_) => Sent::UnderWay(bytes),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: serde_json::Value) -> Sent {
        read(serde_json::from_value(value).expect("an answer"))
    }

    #[test]
    fn one_that_has_the_guest_is_told_from_one_that_waits_and_from_another() {
        let of = |word: &str, info: serde_json::Value| {
            let run = Run { on: true, running: word == "running", word: word.into() };
            stand(run, &serde_json::from_value(info).expect("an answer"), "/run/b.in")
        };
        let here = json!([{ "type": "unix", "path": "/run/b.in" }]);
        let elsewhere = json!([{ "type": "inet", "host": "::", "port": "7" }]);
        let came = || json!({ "status": "completed" });
        assert_eq!(of("inmigrate", json!({})), Stand::Idle);
        assert_eq!(of("inmigrate", json!({ "socket-address": elsewhere })), Stand::Idle);
        assert_eq!(of("inmigrate", json!({ "socket-address": here })), Stand::Awaits);
        assert_eq!(of("inmigrate", json!({ "status": "active" })), Stand::Awaits);
        assert_eq!(of("paused", came()), Stand::Has(Guest::Still));
        assert_eq!(of("running", came()), Stand::Has(Guest::Runs));
        assert_eq!(of("paused", json!({})), Stand::Stranger(Guest::Still));
        assert_eq!(of("running", json!({})), Stand::Stranger(Guest::Runs));
        for word in ["shutdown", "internal-error", "io-error", "save-vm", "a newer one"] {
            let guest = || Guest::Otherwise(word.into());
            assert_eq!(of(word, came()), Stand::Has(guest()));
            assert_eq!(of(word, json!({})), Stand::Stranger(guest()));
        }
    }

    #[test]
    fn what_qemu_says_of_a_sending_is_read() {
        assert_eq!(of(json!({})), Sent::Nothing);
        assert_eq!(of(json!({ "status": "cancelled" })), Sent::Stayed(None));
        let failed = json!({ "status": "failed", "error-desc": "no" });
        assert_eq!(of(failed), Sent::Stayed(Some("no".into())));
        let all = json!({ "status": "completed", "downtime": 12, "total-time": 400 });
        assert_eq!(of(all), Sent::All(SentBytes::default(), 12.0));
        let ram = json!({ "transferred": 5, "remaining": 3, "total": 8, "mbps": 80.0,
            "dirty-sync-count": 2, "page-size": 4096 });
        let bytes = SentBytes { done: 5, left: 3, rate: 1e7, passes: 2 };
        for word in ["active", "device", "what a newer one says"] {
            let under_way = json!({ "status": word, "ram": ram });
            assert_eq!(of(under_way), Sent::UnderWay(bytes));
        }
        assert_eq!(
            of(json!({ "status": "setup" })),
            Sent::UnderWay(SentBytes::default())
        );
    }
}
