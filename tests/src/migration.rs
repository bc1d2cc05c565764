//! Migrations: started, watched and steered with the command line.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::daemon::Daemon;
use crate::wait::{seconds, until};

/// How long a whole move may take.
const MOVE: Duration = seconds(180);
/// How long a migration may take to do as it is told.
const OBEDIENCE: Duration = seconds(30);
/// How often the daemon is asked: its answer takes a few milliseconds of a processor.
const PERIOD: Duration = Duration::from_millis(30);

impl Daemon {
    /// Starts a migration that goes on by itself; gives its number.
    #[track_caller]
    pub fn migrate(&self, line: &str) -> u64 {
        let migration = self.json(&format!("migrate {line} --detach"));
        migration["id"].as_u64().expect("a migration has a number")
    }

    /// The migration now.
    #[track_caller]
    pub fn migration(&self, id: u64) -> Value {
        self.json(&format!("migration show {id}"))
    }

    /// Pauses it; gives it as it is then.
    #[track_caller]
    pub fn pause(&self, id: u64) -> Value {
        self.sterna(&format!("migration pause {id}")).ok();
        self.wait_for(id, "paused", OBEDIENCE)
    }

    /// Lets it go on.
    #[track_caller]
    pub fn resume(&self, id: u64) {
        self.sterna(&format!("migration resume {id}")).ok();
    }

    /// Cancels it; gives it as it is then.
    #[track_caller]
    pub fn cancel(&self, id: u64) -> Value {
        self.sterna(&format!("migration cancel {id}")).ok();
        self.wait_for(id, "cancelled", OBEDIENCE)
    }

    /// Lets it copy as fast as it can, unless it has ended by now.
    #[track_caller]
    pub fn hurry(&self, id: u64) {
        let answer = self.sterna(&format!("migration set {id} --rate none"));
        if !self.migration(id)["ended"].is_number() {
            answer.ok();
        }
    }

    /// Waits until it is completed, and gives it.
    #[track_caller]
    pub fn completed(&self, id: u64) -> Value {
        self.wait_for(id, "completed", MOVE)
    }

    /// Waits until the migration is in this state, and gives it.
    #[track_caller]
    pub fn wait_for(&self, id: u64, state: &str, limit: Duration) -> Value {
        let mut last = Value::Null;
        let what = format!("migration {id} to be {state}");
        let deadline = Instant::now() + limit;
        loop {
            // No answer is no answer yet: the daemon may be on its way back.
            if let Some(answer) = self.json_if_any(&format!("migration show {id}")) {
                last = answer;
                if last["state"] == state {
                    return last;
                }
                let over = last["state"] == "completed" || last["state"] == "cancelled";
                assert!(!over, "waited for {what}, but:\n{last:#}\n{}", self.log());
            }
            assert!(
                Instant::now() < deadline,
                "waited {limit:?} for {what}; last seen:\n{last:#}\n{}",
                self.log()
            );
            std::thread::sleep(PERIOD);
        }
    }

    /// Waits until so many bytes are on the destination; the move must not have
    /// ended by then.
    #[track_caller]
    pub fn wait_for_bytes(&self, id: u64, bytes: u64) -> Value {
        until(&format!("{bytes} bytes of migration {id}"), seconds(60), || {
            let migration = self.migration(id);
            let ended = migration["ended"].is_number();
            assert!(!ended, "the move was over too soon for this test:\n{migration:#}");
            let synced = migration["progress"]["synced"].as_u64().unwrap_or(0);
            (synced >= bytes).then_some(migration)
        })
    }
}
