//! How short of memory a host is.
//!
//! **Rule.** As in vSphere, states are parts of a reserve that the host is to keep available: if
//! nobody says otherwise, 899 MB of the first 28 GB and 1 % of the rest. Each state is left when
//! a quarter more than its part is available again, so that a host at a limit does not change its
//! state each second.
//!
//! The parts are vSphere's but for the first: memory that goes out to a slow tier takes minutes, so
//! it begins as soon as the reserve is touched.

/// The reserve of a host of [`RESERVE_OF`]: vSphere's, so that figures compare.
const RESERVE: f64 = 899e6;

/// Up to this size the reserve is in proportion.
const RESERVE_OF: f64 = 28e9;

/// Of what is beyond, this part.
const RESERVE_BEYOND: f64 = 0.01;

/// What is to be available beyond a state's part until the state is left.
pub(super) const LEAVE: f64 = 1.25;

/// How short of memory a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// There is enough.
    #[default]
    High,
    /// Balloons take what guests do not need.
    Soft,
    /// Memory of guests goes out.
    Hard,
    /// All means are used at once.
    Low,
}

impl HostState {
    /// All but the first, with the part of the reserve below which each begins.
    const PARTS: [(HostState, f64); 3] =
        [(HostState::Soft, 1.0), (HostState::Hard, 0.64), (HostState::Low, 0.32)];

    /// The state after this one, of a host that is to keep such a reserve and has so much
    /// available, in bytes.
    #[must_use]
    pub fn next(self, reserve: u64, available: u64) -> HostState {
        let part = available as f64 / reserve.max(1) as f64;
        let of = |(state, begins): (HostState, f64)| {
            let begins = if self >= state { begins * LEAVE } else { begins };
            (part < begins).then_some(state)
        };
        HostState::PARTS.into_iter().filter_map(of).next_back().unwrap_or_default()
    }
}

/// What a host with so much memory is to keep available if nobody says otherwise, in bytes.
pub fn reserve(total: u64) -> u64 {
    let total = total as f64;
    let of_first = RESERVE * (total.min(RESERVE_OF) / RESERVE_OF);
    let of_rest = (total - RESERVE_OF).max(0.0) * RESERVE_BEYOND;
    ((of_first + of_rest) as u64).max(1)
}
