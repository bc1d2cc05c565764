//! Whether a guest that sleeps needs its memory.
//!
//! # Rule
//!
//! A guest that does nothing still does something: its kernel has timers, and its programs look
//! after themselves. An idle Linux with PostgreSQL touched 60 to 80 pages in the first second after
//! its memory had gone out, 1,700 in the second in which the database looked after its tables, and
//! 13 MiB of 470 in a minute (measured, QEMU without KVM). To bring all back for that would undo
//! the sleep a few seconds after it. So what counts is not that a guest touches what is out, but
//! what that costs it, and how much it is:
//!
//! - it *waits* for the devices for [`WAITS`] of a processor's time: a disk does that with twenty
//!   pages, flash with a thousand. How long a wait takes is what the device was measured to do
//!   alone; one that others use takes longer, so a guest that waits in each of [`STEADILY`] windows
//!   counts as well;
//! - or it *uses* [`USES`] of what is out within [`WHILE`]: also what is in memory as well, for
//!   which nobody waits.
//!
//! # Special cases
//!
//! A few waits say nothing, however long they take: the device may hang for others. A guest with
//! little out is seen by its waits alone.

use super::tier::PAGE;
use crate::Nanos;

/// What a guest waits is counted over this long.
const WINDOW: Nanos = Nanos::from_secs(2);

/// A guest that waits for this part of a processor's time in a window needs its memory: an eighth
/// is more than timers wait, and is over after a few requests of a disk.
const WAITS: f64 = 0.125;

/// So few waits in a window are timers', however long they take.
const WAITS_FEW: u64 = 20;

/// A guest that waits more often in each of so many windows in a row is no timer's, however short
/// its waits should be: an idle guest has bursts, and rests between them.
const STEADILY: u32 = 5;

/// What a guest uses is counted over this long: what an idle guest does comes again within it.
const WHILE: Nanos = Nanos::from_secs(60);

/// A guest that uses this part of what is out within [`WHILE`] needs its memory: twice what an idle
/// one did.
const USES: f64 = 1.0 / 16.0;

/// So little says nothing, in bytes: the idle parts of a small guest are no smaller.
const USES_LITTLE: u64 = 8 << 20;

/// Why a guest needs its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It waits for it.
    Waits,
    /// It uses a good part of it.
    Uses,
}

/// What an idle guest uses in a minute at most, in bytes, however much is out.
const IDLE_MOST: u64 = 64 << 20;

/// Whether a guest that was woken has used so little of what was out that it was idle, in bytes. It
/// is looked at a minute after the wake. Of one with little out it is not known.
pub fn was_idle(out: u64, used: u64) -> Option<bool> {
    let is_known = (out as f64 * USES) as u64 >= USES_LITTLE;
    is_known.then(|| used < good_part(out).min(IDLE_MOST))
}

/// A good part of so many bytes.
fn good_part(out: u64) -> u64 {
    ((out as f64 * USES) as u64).max(USES_LITTLE)
}

/// Watches one guest that sleeps.
#[derive(Clone, Debug)]
pub struct Stirring {
    /// How long one wait takes.
    access: Nanos,
    /// So many pages are a good part of what is out.
    good_part: u64,
    /// Since when waits are counted, and how many there were.
    waits: (Nanos, u64),
    /// In so many windows before that it waited more than a few times.
    steadily: u32,
    /// Since when pages are counted that came back, and how many.
    back: (Nanos, u64),
}

impl Stirring {
    /// A guest of which so many bytes are out, on devices of which the slowest takes so long for a
    /// page.
    pub fn new(now: Nanos, out: u64, access: Nanos) -> Stirring {
        let good_part = good_part(out) / PAGE;
        Stirring { access, good_part, waits: (now, 0), steadily: 0, back: (now, 0) }
    }

    /// The guest has waited so often since the last look, and so many pages have come back: whether
    /// it needs its memory. Then it is counted anew.
    pub fn look(&mut self, now: Nanos, waits: u64, back: u64) -> Option<Need> {
        self.waits.1 += waits;
        self.back.1 += back;
        let waited = self.waits.1 as f64 * self.access.as_secs_f64();
        let (many, is_over) =
            (self.waits.1 > WAITS_FEW, now.since(self.waits.0) >= WINDOW);
        if is_over {
            self.steadily = if many { self.steadily + 1 } else { 0 };
        }
        let is_long = waited > WAITS * WINDOW.as_secs_f64();
        let need = if many && (is_long || self.steadily >= STEADILY) {
            Some(Need::Waits)
        } else if self.back.1 >= self.good_part {
            Some(Need::Uses)
        } else {
            None
        };
        if need.is_some() || is_over {
            self.waits = (now, 0);
        }
        if need.is_some() {
            self.steadily = 0;
        }
        if need.is_some() || now.since(self.back.0) >= WHILE {
            self.back = (now, 0);
        }
        need
    }
}
