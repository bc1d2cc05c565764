//! The end of a transfer, and what is in its way, in words for people.

use sterna_core::transfer::{Leftover, Loss, PASSES, Rest, Trouble, Verdict, Why};

use super::mover::Driver;

impl Driver {
    /// What is noted of a transfer that ends so.
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
        format!("{vm} has come to {to} and does not run there: QEMU says {word}")
    }

    fn stands(&self, word: &str) -> String {
        let (vm, from) = (&self.record.vm, &self.record.design.from);
        format!("{vm} does not run on {from}: QEMU says {word}")
    }

    fn left(&self, left: Leftover) -> String {
        let socket = self.record.design.source.display();
        match left {
            Leftover::Busy => format!(
                "the QEMU at {socket}, which it has left, does something else by now"
            ),
            Leftover::Stays => format!(
                "the QEMU that it has left, at {socket}, does not end: end it by hand"
            ),
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
                "the QEMU at {socket} does not answer: end it by hand if it does not end \
                 by itself"
            ),
            Rest::Stays => {
                format!("the QEMU at {socket}, which waits, does not end: end it by hand")
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
                    "the QEMU that it ran in has ended ({words}): it runs nowhere; start it \
                     anew{before}"
                )
            }
            Loss::MayHaveRun(words) => format!(
                "the QEMU that it has gone to has ended ({words}), and may have run it: \
                 start it anew, and end what is left of it at {socket}: its memory may be \
                 older than its disks"
            ),
        }
    }

    /// Why it cannot go on.
    pub(super) fn trouble(&self, trouble: &Trouble) -> String {
        match trouble {
            Trouble::Source(words) => format!("the QEMU that it runs in: {words}"),
            Trouble::Silent(words, rest) => {
                let rest = match rest {
                    Rest::Gone => "the one that waited for it has ended".to_owned(),
                    rest => self.rest(*rest).unwrap_or_default(),
                };
                format!(
                    "the QEMU that it runs in does not answer ({words}): it stays there; \
                     {rest}"
                )
            }
            Trouble::Unclear(words) => format!(
                "the QEMU that it ran in has ended, and whether all of it has come is not \
                 known: the one that it goes to: {words}"
            ),
            Trouble::NotRecorded(words) => format!("it cannot be recorded: {words}"),
            Trouble::DoesNotGoOn(words) => format!("the guest does not go on: {words}"),
            Trouble::Receiver(words) => format!("the QEMU that it has gone to: {words}"),
            Trouble::MayHaveRun(words) => format!(
                "the QEMU that it has gone to: {words}; it may have run there before, so no \
                 other may run it"
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
        Why::NotSent => "the daemon was ended before anything was sent".into(),
        Why::Interrupted => "the daemon ended during the cancellation".into(),
        Why::Machine(words) | Why::Refused(words) => words.clone(),
        Why::NotRecorded(words) => format!("it cannot be recorded: {words}"),
        Why::Slow => format!(
            "the guest writes to its memory faster than QEMU copies: {PASSES} passes \
             were not enough"
        ),
        Why::Paused => "the guest was stopped meanwhile: let the guest run first".into(),
        Why::NotTaken(words) => {
            format!("the QEMU that it goes to does not take it: {words}")
        }
        Why::TooLong => "the QEMU that it goes to takes too long".into(),
        Why::Replaced => "another QEMU is where it was to go".into(),
        Why::Failed(words) => format!("QEMU has cancelled the migration: {words}"),
        Why::ByHand => "another program cancelled QEMU's migration".into(),
        Why::Unknown => {
            "QEMU does not know the migration: QEMU was restarted, or never received \
             the command"
                .into()
        }
        Why::GoesOn => "it goes on where it was".into(),
        Why::Silent => "its QEMU did not answer".into(),
        Why::Ended => "the QEMU that it ran in had ended".into(),
    })
}
