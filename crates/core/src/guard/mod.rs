//! The loops that hold what was promised.
//!
//! # Rule
//!
//! A loop looks at one window of time and says what the copier may take in the next. It
//! measures what it holds, and never trusts a model of the device. The fast part is not
//! here: the mirror itself stops the copier when the guest comes (`mirror`), so a loop
//! may take its time and be right.
//!
//! [`Guard`] (`migration`) is the guard of one move. It runs a loop for each promise of
//! its [`GuardAim`], and the smallest allowance counts.
//!
//! ## The promise to keep a part of the IO/s (`iops_loop`)
//!
//! The copy runs beside the guest in *trial intervals*. Between them lie *baseline
//! intervals* without a copy. A *paired comparison* sets a trial against the baseline on
//! both sides of it (`trials`) and yields the *marginal cost*: the part of its IO/s that
//! the guest loses per byte per second of copying (`marginal_cost`). The marginal cost
//! sets the rate in the next trial and the *duty cycle*, the part of the time that trials
//! have (`tuned_mode`); it also tells which *copy mode* is cheaper, short chunks or
//! bursts (`mode_choice`).
//!
//! ```text
//!                   `baseline_windows` without a copy
//!       ┌───────────┐ ─────────────────────────────► ┌─────────────┐
//!    ┌─►│ baseline  │                                │    trial    │
//!    │  │ rate 0    │ ◄───────────────────────────── │ mode's rate │
//!    │  └─────┬─────┘   `trial_windows` with a copy  └──────┬──────┘
//!    │        │                                             │
//!    │        │ 3rd window after a trial of 1 to 3;         │ 4th window of a trial after
//!    │        │ after a longer one: early loss?             │ a baseline after a trial
//!    │        │ (too much: the rate is halved)              │ of 4 or more
//!    │        └───────────────┬─────────────────────────────┘
//!    │                        ▼
//!    │             ┌─────────────────────┐ outer windows differ by over 30 %: dropped
//!    │             │  paired comparison  │ IO/s jump by over 25 % and 4 times the
//!    │             └──────────┬──────────┘ noise: marginal costs in doubt
//!    │                        ▼
//!    │    marginal cost ► copy mode ► rate and duty cycle of the next trial
//!    │
//!    └── the guest is idle for over a tenth of a window or hangs, or the schedule is
//!        closed: the loop forgets the windows (not the marginal cost)
//!
//!    status      fewer than 5 comparisons                   Learning
//!                loss + mirroring cost within the budget    Holding
//!                above it                                   Converging
//!                mirroring cost alone above the budget      Unreachable: MirrorCosts
//!                5 comparisons in a row in which the least
//!                rate costs more than the budget            Unreachable: CopyCosts
//!                  └─ nothing is copied beside the guest for 300 busy windows,
//!                     then the loop begins anew
//!                1200 busy windows without a comparison:    the loop begins anew
//! ```
//!
//! ## The bound on the 99th percentile (`latency_loop`)
//!
//! The rate rises while the percentile is below the bound and is halved when requests are
//! slow. If that does not help, the loop stops the copy and finds out whose doing the
//! slowness is (`attribution`):
//!
//! ```text
//!   ┌────────────┐ slow: the rate is halved,   ┌──────────────┐ slow again:
//!   │ no suspect │ its ceiling falls to 80 %   │ SlowWithCopy │ the copy stops
//!   │ rate rises │ ──────────────────────────► │              │ ──┐
//!   └────────────┘ ◄────────────────────────── └──────┬───────┘ ◄─┘
//!     ▲   ▲   ▲      a step up is due: dismissed      │ 3 windows slow with
//!     │   │   │                                       ▼ nothing copied
//!     │   │   │  5 windows within the          ┌─────────────┐
//!     │   │   └─────────────────────────────── │ SlowWithout │
//!     │   │     bound: the last answer stands  └──────┬──────┘
//!     │   │                                           │ the same, without an answer
//!     │   │                                           ▼ or to check TheCopy again
//!     │   │   20 s, or 40 to 120 s, without       ┌──────────┐
//!     │   └────────────────────────────────────── │ Watching │
//!     │       coming back: TheCopy                └────┬─────┘
//!     │                                                │ 3 windows slow with
//!     │       5 windows within the bound:              ▼ nothing copied
//!     │       NotTheCopy: ceiling and half        ┌──────────┐
//!     └────────────────────────────────────────── │ CameBack │
//!             of the rate come back               └──────────┘
//!
//!   From every state to "no suspect": mirrored writes wait for the destination; the
//!   copier works in idle gaps; the guest hangs or has had no answer for 10 s; the
//!   schedule is closed. An answer is good for 5 minutes.
//!
//!   status      requests slow too often with hardly a copy:
//!                 mirrored writes wait                     Unreachable: MirrorLatency
//!                 else                                     Unreachable: OwnLatency
//!               fewer than 10 windows                      Learning
//!               percentile above the bound                 Converging
//!               nothing is copied                          Learning
//!               else                                       Holding
//! ```
//!
//! # Invariants
//!
//! - A guard never lets the copier take more than its tightest loop allows: what must
//!   hold for the guest comes before the deadline.
//! - A comparison sets intervals against each other that are next to each other, have
//!   enough answers, and are of one load.
//! - An [`Experience`] of an earlier guard says where this one begins, never what is so.
//! - Without a promise and without a deadline, the copier takes all it can.
//!
//! # Special cases
//!
//! - Mirrored writes cost something in trials and in baselines, so no paired comparison
//!   shows it. `mirroring_cost` measures it apart: the wait for the destination, and for
//!   sequential writers how much slower two writes are than one (`double_write_cost`).
//! - The guest itself may miss the bound on latency. `baseline_tail` counts the requests
//!   that are slow with hardly a copy beside them.
//! - `deadline` computes how fast the copy must go to end in time, after what idle gaps
//!   bring.
//! - `outlook` is what a prediction assumes of a guard that has not begun.
//! - `cruise` is no guard of a move: it holds one class's target by slowing the others.
//!
//! # Failures
//!
//! - If a promise cannot be kept, the status says [`Unreachable`] and why, and the loop
//!   does what still helps.
//! - If the guest waits and gets no answer for half a second, nothing is copied until it
//!   gets one; the status is `Converging`.
//! - If the deadline cannot be met beside a promise, the move is late, and the guard says
//!   by how much.

mod aim;
mod attribution;
mod baseline_tail;
pub mod cruise;
mod deadline;
mod double_write_cost;
mod experience;
mod iops_loop;
mod latency_loop;
mod marginal_cost;
mod migration;
mod mirroring_cost;
mod mode_choice;
mod observation;
pub(crate) mod outlook;
mod status;
mod trials;
mod tuned_mode;

pub use aim::{GuardAim, Remaining};
pub use experience::{Experience, LatencyExperience, TrialExperience};
pub use migration::Guard;
pub use observation::Observation;
pub use status::{GuardStatus, Unreachable};

/// The rate that a loop begins with where means are kept, bytes per second: three small
/// chunks in a tenth of a second, which no mean shows.
const START: f64 = (2 << 20) as f64;

/// Below this, copying beside the guest is not worth what it costs: four small chunks
/// per second.
const LEAST: f64 = (256 << 10) as f64;

/// More than any device copies.
const MOST: f64 = (16_u64 << 30) as f64;
