//! The end of a VM migration, and what is in its way, in words for people.

use sterna_core::transfer::{Leftover, Loss, PASSES, Rest, Trouble, Verdict, Why};

use super::driver::Driver;

impl Driver {
    /// What is noted of a VM migration that ends so.
    pub(super) fn note_of(&self, verdict: &Verdict) -> Option<String> {
        let parts = match verdict {
            Verdict::There { befallen, left } => [
                befallen.as_deref().map(|word| self.befallen(word)),
                left.map(|left| self.left(left)),
            ],
            Verdict::Stays { why, stands, rest } => {
                let stands = stands.as_deref().map(|word| self.stands(word));
                let parts = [reason(why), stands, self.rest(*rest)];
                return joined(parts);
            }
            Verdict::Lost(loss, rest) => [Some(self.loss(loss)), self.rest(*rest)],
        };
        joined(parts)
    }

    fn befallen(&self, word: &str) -> String {
        let (vm, to) = (&self.record.vm, &self.record.design.to);
        format!("{vm} has arrived on {to}, but does not run there: QEMU reports {word}")
    }

    fn stands(&self, word: &str) -> String {
        let (vm, from) = (&self.record.vm, &self.record.design.from);
        format!("{vm} does not run on {from}: QEMU reports {word}")
    }

    fn left(&self, left: Leftover) -> String {
        let socket = self.record.design.source.display();
        match left {
            Leftover::Busy => format!(
                "the first QEMU, at {socket}, has another task now: Sterna leaves it \
                 running"
            ),
            Leftover::Stays => {
                format!("the first QEMU, at {socket}, does not end: end it by hand")
            }
        }
    }

    /// What is said of a QEMU that it does not go to.
    fn rest(&self, rest: Rest) -> Option<String> {
        let socket = self.record.design.destination.display();
        Some(match rest {
            Rest::Gone => return None,
            Rest::Spared => {
                format!(
                    "Sterna leaves the QEMU at {socket} alone: it may belong to another \
                     program by now"
                )
            }
            Rest::Deaf => format!(
                "the QEMU at {socket} does not answer: if it does not end by itself, end \
                 it by hand"
            ),
            Rest::Stays => {
                format!("the waiting QEMU at {socket} does not end: end it by hand")
            }
        })
    }

    fn loss(&self, loss: &Loss) -> String {
        let socket = self.record.design.source.display();
        match loss {
            Loss::Ended { words, why } => {
                let before = match why {
                    Why::Ended => None,
                    why => reason(why),
                };
                let before =
                    before.map_or(String::new(), |why| format!("; before that: {why}"));
                format!(
                    "the first QEMU has ended ({words}), so the VM runs nowhere: start \
                     the VM anew{before}"
                )
            }
            Loss::MayHaveRun(words) => format!(
                "the second QEMU has ended ({words}), and may have run the VM: end the \
                 first QEMU, at {socket}, because its memory may be older than the \
                 disks, and start the VM anew"
            ),
        }
    }

    /// Why it cannot go on.
    pub(super) fn trouble(&self, trouble: &Trouble) -> String {
        match trouble {
            Trouble::Source(words) => format!("the first QEMU: {words}"),
            Trouble::Silent(words, rest) => {
                let rest = match rest {
                    Rest::Gone => "the second QEMU has ended".to_owned(),
                    rest => self.rest(*rest).unwrap_or_default(),
                };
                format!(
                    "the first QEMU does not answer ({words}), so the VM stays there; \
                     {rest}"
                )
            }
            Trouble::Unclear(words) => format!(
                "the first QEMU has ended, and it is unknown whether the second QEMU has \
                 received all of the VM: the second QEMU: {words}"
            ),
            Trouble::NotRecorded(words) => {
                format!("Sterna cannot record the VM migration: {words}")
            }
            Trouble::DoesNotGoOn(words) => {
                format!("the guest does not continue: {words}")
            }
            Trouble::Receiver(words) => format!("the second QEMU: {words}"),
            Trouble::MayHaveRun(words) => format!(
                "the second QEMU: {words}; the guest may have run there, so Sterna lets \
                 no other QEMU run it"
            ),
        }
    }
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Why it is where it was, unless that was asked for.
fn reason(why: &Why) -> Option<String> {
    Some(match why {
        Why::Asked => return None,
        Why::Stopped => "the daemon was stopped".into(),
        Why::NotSent => "the daemon ended before QEMU sent anything".into(),
        Why::Interrupted => "the daemon ended during the cancellation".into(),
        Why::Vm(words) | Why::Refused(words) => words.clone(),
        Why::NotRecorded(words) => {
            format!("Sterna cannot record the VM migration: {words}")
        }
        Why::Slow => format!(
            "the guest writes to its memory faster than QEMU copies: {PASSES} passes \
             were not enough"
        ),
        Why::Paused => {
            "the guest was stopped during the copy: let the guest run first".into()
        }
        Why::NotTaken(words) => {
            format!("the second QEMU does not accept the guest: {words}")
        }
        Why::TooLong => "the second QEMU takes too long".into(),
        Why::Replaced => "a different QEMU answers on the second QEMU's socket".into(),
        Why::Failed(words) => format!("QEMU has cancelled the migration: {words}"),
        Why::ByHand => "another program cancelled QEMU's migration".into(),
        Why::Unknown => {
            "QEMU does not know the migration: QEMU was restarted, or never received \
             the command"
                .into()
        }
        Why::GoesOn => "the guest continues at the first QEMU".into(),
        Why::Silent => "the first QEMU did not answer".into(),
        Why::Ended => "the first QEMU had ended".into(),
    })
}
