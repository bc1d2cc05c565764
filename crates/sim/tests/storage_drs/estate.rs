//! Eight arrays, sixty disks, and Storage DRS that looks at them.

use sterna_core::Nanos;
use sterna_core::array::Preset;
use sterna_core::measure::{LqLine, Spread, Window};
use sterna_placement::storage::{
    Advice, Bounds, Cooldown, Cycle, Datastore, Disk, Due, Fared, Inventory, MoveFared,
    Over, PastMove, Pinned, Verdict, Why, advise_where, verdict,
};
use sterna_sim::{Access, Client, Load, Plan, Series, Uncontrolled, World};
use sterna_workload::random::{Random, scatter};

const GIB: u64 = 1 << 30;

/// The arrays: all kinds, and of the slowest one another.
const ARRAYS: [Preset; 8] = [
    Preset::OldFc,
    Preset::NewFc,
    Preset::SataSsd,
    Preset::Sas10k,
    Preset::Sata7k,
    Preset::Flash2010,
    Preset::E4Fc,
    Preset::Sata7k,
];

const DISKS: usize = 60;

/// A look is so long after the one before.
const LOOK: Nanos = Nanos::from_secs(1200);
/// A period and a window: three looks.
const WINDOW: Nanos = Nanos::from_secs(3600);
const LOOKS: usize = 3;
/// So long the arrays are run for each look, in windows of so long.
const SPAN: Nanos = Nanos::from_secs(4);
const PERIOD: Nanos = Nanos::from_millis(500);
/// Each datastore has room for so much: all of them twice what there is.
const CAPACITY: u64 = 400 * GIB;
/// So many moves at once, as the daemon makes.
const AT_ONCE: usize = 2;

/// A move that was made.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) disk: usize,
    /// The look at which it began; it is there at the next one.
    pub(crate) look: usize,
    from: usize,
    to: usize,
    why: Why,
    before: MoveFared,
    judged: bool,
}

#[derive(Clone, Debug)]
struct Member {
    bytes: u64,
    /// Requests per second.
    rate: f64,
    outstanding: u32,
}

/// What was measured in a look.
#[derive(Clone, Debug)]
struct Look {
    disks: Vec<Window>,
    arrays: Vec<Window>,
}

/// The estate.
pub(crate) struct Estate {
    seed: u64,
    disks: Vec<Member>,
    /// Which array each disk is on.
    pub(crate) at: Vec<usize>,
    lines: Vec<LqLine>,
    seen: Vec<Look>,
    cycle: Cycle<usize>,
    look: usize,
    pub(crate) moves: Vec<Moved>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// A quantile of all requests of all arrays.
pub(crate) fn overall(series: &Series, part: f64) -> Nanos {
    let mut all = Spread::default();
    for array in &series.arrays {
        all.merge(&array.whole().response);
    }
    all.quantile(part).unwrap_or_default()
}

impl Estate {
    /// An estate from a seed. Where disks are says nothing of what they ask.
    pub(crate) fn new(seed: u64) -> Estate {
        let mut random = Random::new(scatter(seed));
        let disks = (0..DISKS).map(|_| Member {
            bytes: (5 + random.below(40)) * GIB,
            rate: 15.0 + random.below(90) as f64,
            outstanding: 2 + random.below(6) as u32,
        });
        Estate {
            seed,
            disks: disks.collect(),
            at: (0..DISKS).map(|disk| disk % ARRAYS.len()).collect(),
            lines: vec![LqLine::default(); ARRAYS.len()],
            seen: Vec::new(),
            cycle: Cycle::new(Nanos(0), WINDOW, WINDOW),
            look: 0,
            moves: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// So many looks.
    pub(crate) fn span(&self, looks: usize) -> Nanos {
        Nanos(LOOK.0 * looks as u64)
    }

    /// Half of the disks ask for something else from now on.
    pub(crate) fn shift(&mut self) {
        let mut random = Random::new(scatter(self.seed ^ 0xface));
        for disk in self.disks.iter_mut().step_by(2) {
            disk.rate = 15.0 + random.below(90) as f64;
            disk.outstanding = 2 + random.below(6) as u32;
        }
    }

    /// A placement made by chance, in which everything has its room.
    pub(crate) fn chance(&self, number: u64) -> Vec<usize> {
        let mut random = Random::new(scatter(self.seed ^ scatter(number)));
        let mut taken = [0; ARRAYS.len()];
        let most = (CAPACITY as f64 * Bounds::default().space) as u64;
        let mut place = |disk: &Member| loop {
            let at = random.below(ARRAYS.len() as u64) as usize;
            if taken[at] + disk.bytes <= most {
                taken[at] += disk.bytes;
                return at;
            }
        };
        self.disks.iter().map(&mut place).collect()
    }

    /// Runs the arrays with the disks in these places.
    pub(crate) fn run(&self, at: &[usize], seed: u64) -> Series {
        let client = |(number, disk): (usize, &Member)| {
            let load = Load::Bounded { rate: disk.rate, outstanding: disk.outstanding };
            let access =
                Access { bytes: 8192, read_percent: 75, random: true, size: disk.bytes };
            let array = at[number];
            Client { array, ..Client::new(&format!("disk{number}"), load, access) }
        };
        let plan = Plan {
            seed: scatter(self.seed) ^ scatter(seed),
            period: PERIOD,
            span: SPAN,
            arrays: ARRAYS.iter().map(|preset| preset.model()).collect(),
            clients: self.disks.iter().enumerate().map(client).collect(),
            faults: Vec::new(),
            noise: 0.0,
        };
        World::run(plan, &mut Uncontrolled)
    }

    /// Lets so many looks pass; Storage DRS acts if it is to.
    pub(crate) fn live(&mut self, looks: usize, acts: bool) {
        for _ in 0..looks {
            self.look += 1;
            self.measure();
            self.judge();
            let now = self.span(self.look);
            let bounds = Bounds::default();
            let inventory = self.inventory(now);
            let is_over = match self.cycle.due(now) {
                Due::Look => {
                    let over: Vec<(usize, Over)> = (0..ARRAYS.len())
                        .filter(|at| {
                            let latency = inventory.datastores[*at].latency;
                            latency.is_some_and(|it| it > bounds.latency)
                        })
                        .map(|at| (at, Over::Latency))
                        .collect();
                    self.cycle.looked(now, &over)
                }
                _ => false,
            };
            if is_over && acts {
                let held = |at: usize, over| self.cycle.is_held(&at, over);
                let advice = advise_where(&inventory, &bounds, held);
                self.begin(&inventory, &advice);
            }
        }
    }

    fn begin(&mut self, inventory: &Inventory, advice: &Advice) {
        // One that begins now is there before the next look.
        for one in advice.at_once(inventory, AT_ONCE, &[]) {
            let before = self.scene(one.disk, [one.from, one.to]);
            self.at[one.disk] = one.to;
            self.moves.push(Moved {
                disk: one.disk,
                look: self.look,
                from: one.from,
                to: one.to,
                why: one.why,
                before,
                judged: false,
            });
        }
    }

    /// Looks at the arrays for a while.
    fn measure(&mut self) {
        let series = self.run(&self.at, self.look as u64);
        let begins = self.span(self.look - 1);
        for (line, course) in self.lines.iter_mut().zip(&series.arrays) {
            let count = course.windows.len() as u64;
            for (number, window) in course.windows.iter().enumerate() {
                let at = Nanos(LOOK.0 * (number as u64 + 1) / count);
                line.add(begins.plus(at), window);
            }
        }
        self.seen.push(Look {
            disks: series.clients.iter().map(|course| course.whole()).collect(),
            arrays: series.arrays.iter().map(|course| course.whole()).collect(),
        });
    }

    /// What one of them did in the last window.
    fn window(&self, of: impl Fn(&Look) -> &Window) -> Window {
        let mut all = Window::default();
        let old = self.seen.len().saturating_sub(LOOKS);
        self.seen[old..].iter().for_each(|look| all.extend(of(look)));
        all
    }

    fn scene(&self, disk: usize, ends: [usize; 2]) -> MoveFared {
        let [source, destination] =
            ends.map(|at| fared(&self.window(|look| &look.arrays[at])));
        let disk = fared(&self.window(|look| &look.disks[disk]));
        MoveFared { disk, source, destination, taken: [Some(0.0); 2] }
    }

    /// Judges the moves that were made a window ago.
    fn judge(&mut self) {
        for number in 0..self.moves.len() {
            let one = self.moves[number].clone();
            if one.judged || self.look < one.look + LOOKS {
                continue;
            }
            self.moves[number].judged = true;
            let after = self.scene(one.disk, [one.from, one.to]);
            self.verdicts.push(verdict(one.why, &Bounds::default(), &one.before, &after));
        }
    }

    fn inventory(&self, now: Nanos) -> Inventory {
        let taken = |at: usize| -> u64 {
            let there = self.at.iter().zip(&self.disks).filter(|it| *it.0 == at);
            there.map(|(_, disk)| disk.bytes).sum()
        };
        let datastore = |at: usize| {
            let window = self.window(|look| &look.arrays[at]);
            let recent = |one: &&Moved| self.look < one.look + LOOKS;
            let mut recent = self.moves.iter().filter(recent);
            Datastore {
                capacity: CAPACITY,
                free: CAPACITY.saturating_sub(taken(at)),
                shared_room: None,
                latency: window.response.quantile(0.95),
                mean: fared(&window).mean,
                device: self.lines[at].fit(now),
                settling: recent.any(|one| one.from == at || one.to == at),
                takes_disks: true,
            }
        };
        let disk = |number: usize| {
            let did = self.window(|look| &look.disks[number]);
            let past = self.moves.iter().filter(|one| one.disk == number);
            let past: Vec<PastMove> = past
                .map(|one| PastMove { ago: self.span(self.look - one.look), ours: true })
                .collect();
            Disk {
                datastore: self.at[number],
                taken: self.disks[number].bytes,
                needs: self.disks[number].bytes,
                promised: 0,
                outstanding: did.outstanding(),
                iops: did.iops(),
                pinned: Cooldown::of(&past).map(Pinned::Moved),
            }
        };
        Inventory {
            datastores: (0..ARRAYS.len()).map(datastore).collect(),
            disks: (0..DISKS).map(disk).collect(),
            rules: Vec::new(),
        }
    }
}

/// What a window says.
fn fared(window: &Window) -> Fared {
    let total = window.total();
    Fared {
        iops: window.iops(),
        mean: total.mean(total.response),
        p95: window.response.quantile(0.95),
    }
}
