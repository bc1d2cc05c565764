//! What is asked of the two QEMUs, and what their answers mean.

use std::time::Duration;

use sterna_core::transfer::{End, Failure, Guest, Left, Sent, Stand, Words};
use sterna_qemu::qmp::QmpError;
use sterna_qemu::{Guest as Found, PAUSED, QemuError, Sent as Said, Stand as There};
use tokio::time::{Instant, sleep};

use super::RATE;
use super::driver::Driver;
use super::qemu::{direct, remembered};

/// How long a QEMU may take to listen after the program that starts it has ended.
const START: Duration = Duration::from_secs(10);

/// How often it is looked whether it does.
const LOOK: Duration = Duration::from_millis(100);

/// QEMU's word for one that has sent its guest, which stands still there.
const HANDED_OVER: &str = "postmigrate";

/// And for one that is about to.
const HANDS_OVER: &str = "finish-migrate";

/// What an error says of a QEMU.
fn failure(error: QemuError) -> Failure {
    let words = error.to_string();
    match error {
        QemuError::Qmp(QmpError::Broken) => Failure::Cut(words),
        error if error.is_gone() => Failure::Nobody(words),
        error if error.is_silent() => Failure::Silent(words),
        error if error.is_refusal() => Failure::Refused(words),
        _ => Failure::Other(words),
    }
}

impl Driver {
    /// Has the program start the receiver, unless somebody wants otherwise.
    pub(super) async fn start(&mut self) -> Result<(), Words> {
        let Some(program) = self.record.design.program.clone() else { return Ok(()) };
        let (machines, session) = (self.machines.clone(), self.session.clone());
        let sessions = machines.clone();
        let unwanted = async {
            while !session.is_cancelled() && !sessions.sessions.is_stopping() {
                session.asked.notified().await;
            }
        };
        tokio::select! {
            started = async {
                machines.run_program(&program, &self.record).await?;
                self.wait_for_receiver().await
            } => started,
            () = unwanted => Err("the VM migration was cancelled meanwhile".into()),
        }
    }

    /// Waits until a QEMU that was just started listens.
    async fn wait_for_receiver(&mut self) -> Result<(), Words> {
        let deadline = Instant::now() + START;
        loop {
            match self.receiver.vm().await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_gone() && Instant::now() < deadline => {
                    sleep(LOOK).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    pub(super) async fn check(&mut self) -> Result<(), Words> {
        let unheard = |error: QemuError| error.to_string();
        let source = self.source.vm().await.map_err(unheard)?;
        let receiver = self.receiver.vm().await.map_err(unheard)?;
        let fits = self.machines.check_fit(&source, &receiver).await;
        // What QEMU would remove may have come since it was looked at first.
        fits.and_then(|()| self.stream.check()).map_err(|error| error.to_string())
    }

    pub(super) async fn receive(&mut self) -> Result<(), Failure> {
        // It becomes durable with the next step: before that, nothing is sent.
        let process = self.receiver.keep().await.map_err(failure)?;
        self.record.design.receiver = process.map(remembered);
        let stream = self.stream.tell();
        let told = self.receiver.ask(async |qemu| qemu.receive(&stream).await).await;
        told.map_err(failure)
    }

    pub(super) async fn send(&mut self) -> Result<(), Failure> {
        let stream = self.stream.name();
        let speed = self.record.design.rate.unwrap_or(RATE);
        let told = self.source.ask(async |qemu| qemu.send(&stream, speed).await).await;
        told.map_err(failure)
    }

    pub(super) async fn give_up(&mut self) -> Result<(), Failure> {
        let told = self.source.ask(async |qemu| qemu.give_up_sending().await).await;
        told.map_err(failure)
    }

    pub(super) async fn ask_sent(&mut self) -> Result<Sent, Failure> {
        let vm = self.source.vm().await.map_err(failure)?;
        // What it says from now on is not missed.
        self.said = Some(direct(&vm).monitor().events());
        let said = self.source.ask(async |qemu| qemu.sent().await).await;
        let said = said.map_err(failure)?;
        self.session.note(|status| status.trouble = None);
        Ok(match said {
            Said::Nothing => Sent::Nothing,
            Said::UnderWay(bytes) => {
                self.note_sent(bytes);
                let run = self.source.run().await.map_err(failure)?;
                Sent::UnderWay { passes: bytes.passes, paused: run.word == PAUSED }
            }
            Said::All(bytes, downtime) => {
                self.bytes = bytes;
                self.sent_at.get_or_insert((Instant::now(), downtime));
                Sent::All
            }
            Said::Stayed(why) => Sent::Stayed(why),
        })
    }

    pub(super) async fn ask_left(&mut self) -> Result<Left, Failure> {
        let run = self.source.run().await.map_err(failure)?;
        Ok(match run.word.as_str() {
            _ if run.running => Left::Runs,
            HANDS_OVER => Left::HandsOver,
            HANDED_OVER => Left::Stands,
            _ => Left::Otherwise(run.word),
        })
    }

    pub(super) async fn ask_stand(&mut self) -> Result<Stand, Failure> {
        let stream = self.stream.name();
        let there = self.receiver.ask(async |qemu| qemu.stand(&stream).await).await;
        Ok(match there.map_err(failure)? {
            There::Idle => Stand::Idle,
            There::Awaits => {
                // It was told by an earlier daemon, if not by this one.
                self.stream.tell();
                Stand::Awaits
            }
            There::Has(found) => Stand::Has(guest(found)),
            There::Stranger(found) => Stand::Stranger(guest(found)),
        })
    }

    pub(super) async fn go_on(&mut self, end: End) -> Result<(), Failure> {
        let told = self.qemu(end).ask(async |qemu| qemu.go_on().await).await;
        told.map_err(failure)
    }
}

fn guest(found: Found) -> Guest {
    match found {
        Found::Still => Guest::Still,
        Found::Runs => Guest::Runs,
        Found::Otherwise(word) => Guest::Otherwise(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_breaks_is_no_qemu_that_has_ended() {
        assert!(matches!(failure(QmpError::Broken.into()), Failure::Cut(_)));
        assert!(matches!(failure(QmpError::Gone.into()), Failure::Nobody(_)));
        let after = Duration::from_secs(4);
        let silent = QmpError::Silent { command: "cont", after };
        assert!(matches!(failure(silent.into()), Failure::Silent(_)));
    }

    #[test]
    fn another_qemu_where_one_was_says_that_this_one_has_ended_unless_it_is_there() {
        let another = |is_there| failure(QmpError::Another { is_there }.into());
        assert!(matches!(another(false), Failure::Nobody(_)));
        assert!(matches!(another(true), Failure::Silent(_)));
    }
}
