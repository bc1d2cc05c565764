//! How fast everything goes that shares stations, once it has settled.
//!
//! A *station* has servers that do one thing at a time: the spindles of an array, or a
//! link. A *flow* is a load or a copy: so many requests under way, each of which takes a
//! fixed time, waits at stations, and occupies them. The faster flows go, the fuller
//! stations are; the fuller they are, the longer requests wait; the longer those wait,
//! the slower flows go that have only so many under way. `solve` finds where that meets.
//!
//! **The wait.** Two parts. What is urgent (reads) waits for what is urgent before it and
//! for the operation under way: `R / (1 - u)`, with the mean rest `R` of an operation and
//! the urgent utilisation `u` (Pollaczek and Khinchine, with priorities). What is not
//! (destaging) is passed over until a write cache is pressed for room, which it is when
//! the station is nearly full with everything: from then on all wait, and so do writes:
//! `R v^8 / (1 - v)`, with the utilisation `v` by everything. The power keeps that part
//! away until then; that is its only meaning. On a link nothing is urgent: what comes over
//! it comes one after the other as spindles and copiers let it, and not in heaps.
//!
//! **Streams.** A stream pays a seek each time that its head was elsewhere meanwhile: as
//! often as the operations at its station are others'.
//!
//! **Invariants.** No utilisation is above 1. No flow is faster than its target. The
//! waits are found station by station, each by halving an interval in which the answer
//! is the only one, until none moves; the same flows give the same answer.

/// How far from a full station what is not urgent makes itself felt.
const PRESSED: i32 = 8;

/// The second moment of an operation's time against the square of its mean: what the
/// spread of seeks and turns adds.
const SPREAD: f64 = 1.1;

/// No wait is longer: what would wait so long stands still.
const WAIT_MAX: f64 = 1000.0;

/// Halvings of that: to a nanosecond.
const HALVINGS: usize = 40;

/// Rounds over all stations at most, and the part by which a wait may still move.
const ROUNDS: usize = 60;
const SETTLED: f64 = 1e-3;

/// A place where requests wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Station {
    /// How many do one thing at a time.
    pub(super) servers: f64,
}

/// What a request does at a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) station: usize,
    /// Operations for each request.
    pub(super) operations: f64,
    /// Seconds of one.
    pub(super) takes: f64,
    /// Seconds more of one before which the head was elsewhere: of streams.
    pub(super) seek: f64,
    /// Whether it goes before what is not.
    pub(super) urgent: bool,
}

/// How a request waits at a station, as parts of the two waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) station: usize,
    pub(super) base: f64,
    pub(super) pressed: f64,
}

/// Requests of one kind.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// How many do the same.
    pub(super) many: f64,
    /// Requests per second that one wants; endless if as many as it can get.
    pub(super) target: f64,
    /// Requests that one has under way at most.
    pub(super) outstanding: f64,
    /// Requests that an array has under way for it beside those, ahead of it.
    pub(super) ahead: f64,
    /// Seconds of a request without any wait.
    pub(super) fixed: f64,
    pub(super) waits: Vec<Wait>,
    pub(super) uses: Vec<Use>,
}

/// The waits of all stations: kept from answer to answer, as the next is near.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    base: Vec<f64>,
    pressed: Vec<f64>,
}

/// How fast it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// Requests per second of one of each flow.
    pub(super) rates: Vec<f64>,
    /// Seconds of a request of each flow.
    pub(super) responses: Vec<f64>,
    /// The part of the time in which each station's servers work.
    pub(super) utilisation: Vec<f64>,
}

/// What the flows at a station come to.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Utilisation by what is urgent, and by everything.
    urgent: f64,
    whole: f64,
    /// The mean rest of the operation under way.
    rest: f64,
}

struct Solver<'s> {
    stations: &'s [Station],
    flows: &'s [Flow],
    waits: &'s mut Waits,
    /// Of each use of each flow, how often the head was elsewhere.
    elsewhere: Vec<Vec<f64>>,
    /// The flows that each station serves.
    guests: Vec<Vec<usize>>,
    /// Of a station whose guests all have only so many under way: how many others are
    /// there when one of those comes.
    others: Vec<f64>,
}

/// Finds the rates at which flows settle.
pub(super) fn solve(stations: &[Station], flows: &[Flow], waits: &mut Waits) -> Answer {
    waits.base.resize(stations.len(), 0.0);
    waits.pressed.resize(stations.len(), 0.0);
    let mut solver = Solver::new(stations, flows, waits);
    for _ in 0..ROUNDS {
        let stream_moved = solver.find_streams();
        let moved = solver.find_waits();
        if moved.max(stream_moved) < SETTLED {
            break;
        }
    }
    solver.answer()
}

impl Flow {
    /// Requests per second of one, and seconds of each.
    fn rate(&self, waits: &Waits) -> f64 {
        let waited: f64 = self.waits.iter().map(|wait| waits.of(wait)).sum();
        let of = |under_way: f64, seconds: f64| under_way / seconds.max(1e-9);
        let by_itself = of(self.outstanding, self.fixed);
        let waiting = of(self.outstanding + self.ahead, self.fixed + waited);
        self.target.min(by_itself).min(waiting)
    }
}

impl Waits {
    fn of(&self, wait: &Wait) -> f64 {
        wait.base * (self.base[wait.station] + self.pressed[wait.station])
            + wait.pressed * self.pressed[wait.station]
    }
}

impl<'s> Solver<'s> {
    fn new(
        stations: &'s [Station],
        flows: &'s [Flow],
        waits: &'s mut Waits,
    ) -> Solver<'s> {
        let mut guests = vec![Vec::new(); stations.len()];
        for (number, flow) in flows.iter().enumerate() {
            for one in &flow.uses {
                let station: &mut Vec<usize> = &mut guests[one.station];
                if station.last() != Some(&number) {
                    station.push(number);
                }
            }
        }
        let others = guests.iter().map(|guests| {
            let population = guests.iter().map(|guest| {
                let flow = &flows[*guest];
                let closed = flow.target.is_infinite();
                let under_way = flow.many * (flow.outstanding + flow.ahead);
                if closed { under_way } else { f64::INFINITY }
            });
            (1.0 - 1.0 / population.sum::<f64>().max(1.0)).max(0.0)
        });
        Solver {
            others: others.collect(),
            elsewhere: flows.iter().map(|flow| vec![1.0; flow.uses.len()]).collect(),
            stations,
            flows,
            waits,
            guests,
        }
    }

    /// How often each stream finds the head elsewhere; says how far that has moved.
    fn find_streams(&mut self) -> f64 {
        let rates: Vec<f64> = self.flows.iter().map(|it| it.rate(self.waits)).collect();
        let mut visits = vec![0.0; self.stations.len()];
        for (flow, rate) in self.flows.iter().zip(&rates) {
            for one in &flow.uses {
                visits[one.station] += flow.many * rate * one.operations;
            }
        }
        let mut moved: f64 = 0.0;
        for ((flow, rate), found) in
            self.flows.iter().zip(&rates).zip(&mut self.elsewhere)
        {
            for (one, elsewhere) in flow.uses.iter().zip(found) {
                let own = rate * one.operations / visits[one.station].max(1e-9);
                let next = 0.5 * (*elsewhere + 1.0 - own.min(1.0));
                if one.seek > 0.0 {
                    moved = moved.max((next - *elsewhere).abs());
                }
                *elsewhere = next;
            }
        }
        moved
    }

    /// What the guests of a station come to, as the waits are.
    fn load(&self, station: usize) -> Load {
        let mut load = Load::default();
        let servers = self.stations[station].servers;
        for &guest in &self.guests[station] {
            let flow = &self.flows[guest];
            let rate = flow.many * flow.rate(self.waits) / servers;
            for (one, elsewhere) in flow.uses.iter().zip(&self.elsewhere[guest]) {
                if one.station != station {
                    continue;
                }
                let takes = one.takes + elsewhere * one.seek;
                let busy = rate * one.operations * takes;
                load.whole += busy;
                // A stream that is alone is in nobody's way, and not in its own.
                let in_the_way = if one.seek > 0.0 { *elsewhere } else { 1.0 };
                load.rest += in_the_way * busy * takes * SPREAD / 2.0;
                if one.urgent {
                    load.urgent += busy;
                }
            }
        }
        load
    }

    /// Finds the waits of one station after the other; says by which part the one moved
    /// that moved most.
    fn find_waits(&mut self) -> f64 {
        let mut moved: f64 = 0.0;
        for station in 0..self.stations.len() {
            let others = self.others[station];
            let base = self.halve(
                station,
                |waits| &mut waits.base,
                |load| others * load.rest / (1.0 - load.urgent),
            );
            let pressed = self.halve(
                station,
                |waits| &mut waits.pressed,
                |load| load.rest * load.whole.powi(PRESSED) / (1.0 - load.whole),
            );
            moved = moved.max(base).max(pressed);
        }
        moved
    }

    /// Finds one wait: the model of it falls while it rises.
    fn halve(
        &mut self,
        station: usize,
        which: impl Fn(&mut Waits) -> &mut Vec<f64>,
        model: impl Fn(&Load) -> f64,
    ) -> f64 {
        let before = which(self.waits)[station];
        let above = |solver: &mut Self, wait: f64| {
            which(solver.waits)[station] = wait;
            let load = solver.load(station);
            let model = model(&load);
            // Of a station that is more than full, the model means nothing.
            load.whole >= 1.0 || load.urgent >= 1.0 || model > wait
        };
        let (mut low, mut high) = (0.0, WAIT_MAX);
        // The answer is mostly near the last one.
        if before > 0.0 {
            let (near, far) = (before / 1.05, before * 1.05);
            match (above(self, near), above(self, far)) {
                (true, false) => (low, high) = (near, far),
                (true, true) => low = far,
                (false, _) => high = near,
            }
        }
        for _ in 0..HALVINGS {
            if high - low <= (0.1 * SETTLED * low).max(1e-9) {
                break;
            }
            // Far apart, the middle of the logarithms finds it sooner.
            let middle = if low > 1e-9 && high > 2.0 * low {
                (low * high).sqrt()
            } else if low <= 1e-9 && high > 1e-5 {
                high / 64.0
            } else {
                0.5 * (low + high)
            };
            if above(self, middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        which(self.waits)[station] = high;
        (high - before).abs() / high.max(1e-6)
    }

    fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        for flow in self.flows {
            let rate = flow.rate(self.waits);
            let waited: f64 = flow.waits.iter().map(|wait| self.waits.of(wait)).sum();
            answer.rates.push(rate);
            answer.responses.push(flow.fixed + waited);
        }
        let stations = 0..self.stations.len();
        answer.utilisation =
            stations.map(|station| self.load(station).whole.min(1.0)).collect();
        answer
    }
}
