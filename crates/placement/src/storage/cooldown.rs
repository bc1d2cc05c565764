//! The cooldown of a disk: how long one that has moved stays where it is.
//!
//! What a move was good for shows only after a while, and nobody wants to see a disk go
//! to and fro. So it stays, and twice as long for each move more within a day: a disk
//! that keeps being moved is one of which something is not understood.
//!
//! **One writer.** A move that somebody else has asked for counts as well: whoever did
//! had a reason. If both have moved the disk within a day, another balancer is at work on
//! it, and ours leaves it alone for a day.

use sterna_core::Nanos;

/// How long a disk stays after a move: long enough for its load of a day to show.
pub const COOLDOWN: Nanos = Nanos::from_secs(4 * 3600);

/// Moves within so long before the last one make the cooldown longer.
pub const DAY: Nanos = Nanos::from_secs(24 * 3600);

/// No disk stays longer: what a week shows, a month would show as well.
pub const COOLDOWN_MAX: Nanos = Nanos::from_secs(7 * 24 * 3600);

/// A move that a disk has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastMove {
    /// How long ago it ended.
    pub ago: Nanos,
    /// Whether Storage DRS had begun it by itself.
    pub ours: bool,
}

/// The cooldown of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// How long ago it has moved.
    pub ago: Nanos,
    /// For how long it still stays.
    pub left: Nanos,
    /// Whether it was somebody else who moved it.
    pub others: bool,
    /// Whether we and somebody else have both moved it lately.
    pub contested: bool,
}

impl Cooldown {
    /// The cooldown of a disk that has made these moves; nothing if it may go.
    pub fn of(moves: &[PastMove]) -> Option<Cooldown> {
        let last = moves.iter().min_by_key(|one| one.ago)?;
        let within = |one: &&PastMove| one.ago.since(last.ago) <= DAY;
        let count = moves.iter().filter(within).count();
        let ours = moves.iter().filter(within).any(|one| one.ours);
        let others = moves.iter().filter(within).any(|one| !one.ours);
        let doubled = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
        let times = 1_u64.checked_shl(doubled).unwrap_or(u64::MAX);
        let cooldown = Nanos(COOLDOWN.0.saturating_mul(times)).min(COOLDOWN_MAX);
        let contested = ours && others;
        let cooldown = if contested { cooldown.max(DAY) } else { cooldown };
        (last.ago < cooldown).then(|| Cooldown {
            ago: last.ago,
            left: cooldown.since(last.ago),
            others: !last.ours,
            contested,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn past(hours: u64, ours: bool) -> PastMove {
        PastMove { ago: Nanos::from_secs(hours * HOUR), ours }
    }

    fn left(moves: &[PastMove]) -> Option<u64> {
        Cooldown::of(moves).map(|it| it.left.0 / Nanos::from_secs(HOUR).0)
    }

    #[test]
    fn a_disk_stays_twice_as_long_for_each_move_more_within_a_day() {
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[past(1, true)]), Some(3));
        assert_eq!(left(&[past(4, true)]), None);
        assert_eq!(left(&[past(6, true), past(1, true)]), Some(7));
        assert_eq!(left(&[past(1, true), past(6, true), past(20, true)]), Some(15));
        assert_eq!(left(&[past(1, true), past(26, true)]), Some(3), "a day is over");
    }

    #[test]
    fn no_disk_stays_longer_than_a_week() {
        let many = vec![past(1, true); 200];
        assert_eq!(left(&many), Some(7 * 24 - 1));
    }

    #[test]
    fn a_disk_that_somebody_else_moves_as_well_stays_for_a_day() {
        let cooldown = Cooldown::of(&[past(1, false)]).expect("it stays");
        assert!(cooldown.others && !cooldown.contested, "{cooldown:?}");
        let cooldown = Cooldown::of(&[past(1, false), past(3, true)]).expect("it stays");
        assert!(cooldown.others && cooldown.contested, "{cooldown:?}");
        assert_eq!(left(&[past(1, false), past(3, true)]), Some(23));
        assert_eq!(left(&[past(25, false), past(26, true)]), None);
    }
}
