//! Where machines are, and what they get there: from event to event.
//!
//! Events are: a copy ends, a round of DRS is due, or machines of a host that has failed are
//! to be started elsewhere. Between two of them everybody gets what he gets.

use sterna_core::Nanos;
use sterna_placement::hosts::{
    Amounts, Host, Imbalance, Inventory, Resource, entitled, imbalance,
};

use super::books::Books;
use super::copies::{Copies, Copy};
use super::drs::Drs;
use super::load::{Load, told};
use super::outcome::{Period, Sample, Side};
use super::restart::choose;
use super::scenario::Scenario;

/// Where a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// It runs there.
    On(usize),
    /// It does not run, since that host has failed.
    Down(usize),
}

/// Hosts with machines on them.
pub(super) struct World<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) now: Nanos,
    /// Which hosts there are now.
    pub(super) up: Vec<bool>,
    pub(super) seats: Vec<Seat>,
    /// The machines that run on each host.
    pub(super) on: Vec<Vec<usize>>,
    /// What each gets.
    pub(super) given: Vec<Amounts>,
    /// What each has used of processors, times seconds.
    pub(super) used: Vec<f64>,
    pub(super) copies: Copies,
    pub(super) side: Side,
    /// Hosts where somebody gets something else than before.
    stale: Vec<bool>,
    /// Machines that are to be started elsewhere, and when.
    waiting: Vec<(usize, Nanos)>,
    books: Books,
    drs: Option<Drs>,
}

impl<'s> World<'s> {
    /// As it begins, with DRS or without.
    pub(super) fn new(scenario: &'s Scenario, drs: bool) -> World<'s> {
        let (hosts, vms) = (scenario.hosts.len(), scenario.vms.len());
        let mut on = vec![Vec::new(); hosts];
        for (at, vm) in scenario.vms.iter().enumerate() {
            on[vm.host].push(at);
        }
        World {
            scenario,
            now: Nanos(0),
            up: vec![true; hosts],
            seats: scenario.vms.iter().map(|vm| Seat::On(vm.host)).collect(),
            on,
            given: vec![Amounts::default(); vms],
            used: vec![0.0; vms],
            copies: Copies::default(),
            side: Side::default(),
            stale: vec![true; hosts],
            waiting: Vec::new(),
            books: Books::new(vms),
            drs: drs.then(|| Drs::new(scenario)),
        }
    }

    /// These hosts there are from now on.
    pub(super) fn hosts_are(&mut self, up: &[bool], load: &Load<'_>) {
        for (host, up) in up.iter().enumerate() {
            match (self.up[host], *up) {
                (true, false) => self.fails(host),
                (false, true) => self.is_back(host),
                _ => {}
            }
        }
        self.restart(load);
    }

    fn fails(&mut self, host: usize) {
        self.up[host] = false;
        for copy in self.copies.lost(host) {
            self.side.failed += 1;
            self.stale[copy.from] = true;
            self.stale[copy.to] = true;
            if let Some(drs) = &mut self.drs {
                drs.failed(self.scenario, self.now, copy.vm, copy.from);
            }
        }
        let mut stopped = std::mem::take(&mut self.on[host]);
        // Who starts them goes by their order in the file.
        stopped.sort_unstable();
        let (now, failures) = (self.now, &self.scenario.failures);
        let failure = failures.iter().find(|it| it.host == host && it.holds(now));
        for vm in &stopped {
            self.seats[*vm] = Seat::Down(host);
            self.given[*vm] = Amounts::default();
            let due = failure.and_then(|it| Some(it.at.plus(it.restart?)));
            self.waiting.extend(due.map(|due| (*vm, due)));
        }
        let (name, vms) = (&self.scenario.hosts[host].name, machines(stopped.len()));
        self.tell(format!("{name} fails, and with it {vms}"));
    }

    fn is_back(&mut self, host: usize) {
        self.up[host] = true;
        let down = (0..self.seats.len()).filter(|vm| self.seats[*vm] == Seat::Down(host));
        let down: Vec<usize> = down.collect();
        down.iter().for_each(|vm| self.start(*vm, host));
        let name = &self.scenario.hosts[host].name;
        let what = match down.len() {
            0 => format!("{name} is back, without a machine"),
            number => format!("{name} is back, and with it {}", machines(number)),
        };
        self.tell(what);
    }

    fn tell(&mut self, what: String) {
        self.side.events.push((self.now, what));
    }

    /// A machine that does not run is started on a host.
    fn start(&mut self, vm: usize, host: usize) {
        self.seats[vm] = Seat::On(host);
        self.on[host].push(vm);
        self.stale[host] = true;
        self.waiting.retain(|(other, _)| *other != vm);
        if let Some(drs) = &mut self.drs {
            drs.started(self.scenario, self.now, vm, host);
        }
    }

    /// Machines are started on other hosts for which it is time and room.
    fn restart(&mut self, load: &Load<'_>) {
        let now = self.now;
        let due = self.waiting.iter().filter(|(_, due)| *due <= now);
        let due: Vec<usize> = due.map(|(vm, _)| *vm).collect();
        let mut started = 0;
        for vm in &due {
            if let Some(host) = choose(self, &load.asked, *vm) {
                self.start(*vm, host);
                started += 1;
            }
        }
        if started > 0 {
            let left = due.len() - started;
            let rest =
                if left > 0 { format!(", {left} find no room") } else { "".into() };
            self.tell(format!("{} started on other hosts{rest}", machines(started)));
        }
    }

    /// Goes on until then.
    pub(super) fn pass(&mut self, until: Nanos, load: &Load<'_>) {
        self.stale.fill(true);
        while self.now < until {
            self.give(load);
            let now = self.now;
            let starts = self.waiting.iter().map(|(_, due)| *due).filter(|it| *it > now);
            let round = self.drs.as_ref().map(|drs| drs.next);
            let next = starts.chain(round).chain(self.copies.next());
            let next = next.fold(until, Nanos::min);
            self.goes_by(next, load);
            self.land();
            self.restart(load);
            if round.is_some_and(|round| round <= self.now) {
                self.give(load);
                self.round();
            }
        }
    }

    /// Time goes by in which nothing changes.
    fn goes_by(&mut self, until: Nanos, load: &Load<'_>) {
        let seconds = until.since(self.now).as_secs_f64();
        self.now = until;
        self.books.pass(seconds, &load.entitled, &self.given);
        // One at each end.
        let ends = 2.0 * self.copies.0.len() as f64;
        self.books.copied(ends * self.scenario.drs.bounds.copier * seconds);
        for (used, given) in self.used.iter_mut().zip(&self.given) {
            *used += given.cpu * seconds;
        }
    }

    /// What machines on a host can have of it: what copies leave.
    fn left(&self, host: usize) -> Amounts {
        let has = self.scenario.hosts[host].capacity;
        let copier = self.copies.at(host) as f64 * self.scenario.drs.bounds.copier;
        Amounts {
            cpu: (has.cpu - copier).max(0.0),
            memory: (has.memory - self.copies.coming(host)).max(0.0),
        }
    }

    /// Memory of a host that nobody holds.
    pub(super) fn room(&self, host: usize) -> f64 {
        let held: f64 = self.on[host].iter().map(|vm| self.given[*vm].memory).sum();
        self.left(host).memory - held
    }

    /// Everybody on hosts where something has changed gets what there is for him.
    fn give(&mut self, load: &Load<'_>) {
        for host in 0..self.on.len() {
            if !std::mem::take(&mut self.stale[host]) {
                continue;
            }
            let (left, vms) = (self.left(host), &self.on[host]);
            let asked = Amounts::sum(vms.iter().map(|vm| load.asked[*vm]));
            if Resource::ALL.iter().all(|it| asked.get(*it) <= left.get(*it)) {
                vms.iter().for_each(|vm| self.given[*vm] = load.asked[*vm]);
                continue;
            }
            let told = |vm: &usize| {
                told(self.scenario.profile(*vm).size, 0, None, load.asked[*vm])
            };
            let alone = Inventory {
                hosts: vec![Host { capacity: left }],
                vms: vms.iter().map(told).collect(),
                ..Inventory::default()
            };
            for (vm, given) in vms.iter().zip(entitled(&alone)) {
                self.given[*vm] = given;
            }
        }
    }

    fn round(&mut self) {
        // It looks at everything here, itself left out.
        let Some(mut drs) = self.drs.take() else { return };
        drs.round(self);
        self.drs = Some(drs);
    }

    /// A machine leaves for another host.
    pub(super) fn begin(&mut self, copy: Copy) {
        self.stale[copy.from] = true;
        self.stale[copy.to] = true;
        self.copies.0.push(copy);
    }

    /// Machines whose copies have ended are where they went.
    fn land(&mut self) {
        for copy in self.copies.landed(self.now) {
            self.on[copy.from].retain(|vm| *vm != copy.vm);
            self.on[copy.to].push(copy.vm);
            self.seats[copy.vm] = Seat::On(copy.to);
            self.stale[copy.from] = true;
            self.stale[copy.to] = true;
            self.side.moves.push(copy.made());
            if let Some(period) = self.side.periods.last_mut() {
                period.moves += 1;
            }
            if let Some(drs) = &mut self.drs {
                drs.moved(self.scenario, self.now, copy.vm, copy.to);
            }
        }
    }

    /// The hosts' loads, of those that there are.
    fn loads(&self, load: &Load<'_>) -> (Vec<Amounts>, Imbalance) {
        let hosts = (0..self.on.len()).filter(|host| self.up[*host]);
        let capacity = |host: usize| self.scenario.hosts[host].capacity;
        let sum =
            |host: usize| Amounts::sum(self.on[host].iter().map(|vm| load.entitled[*vm]));
        let loads = hosts.clone().map(|host| sum(host).over(capacity(host)));
        let (loads, has): (Vec<Amounts>, Vec<Amounts>) =
            loads.zip(hosts.map(capacity)).unzip();
        let differ = imbalance(&loads, &has);
        (loads, differ)
    }

    /// A period begins.
    pub(super) fn period_begins(&mut self, load: &Load<'_>) {
        let imbalance = [self.loads(load).1.deviation; 2];
        let from = self.now;
        self.side.periods.push(Period { from, imbalance, ..Period::default() });
    }

    /// It ends.
    pub(super) fn period_ends(&mut self, load: &Load<'_>) {
        let deviation = self.loads(load).1.deviation;
        let total = self.books.close();
        let Some(period) = self.side.periods.last_mut() else { return };
        (period.until, period.total, period.imbalance[1]) = (self.now, total, deviation);
    }

    /// How it is now.
    pub(super) fn sample(&mut self, load: &Load<'_>) {
        self.give(load);
        let (loads, differ) = self.loads(load);
        let lacks = load.entitled.iter().zip(&self.given).map(|(entitled, given)| {
            Amounts::of(|it| (entitled.get(it) - given.get(it)).max(0.0))
        });
        let highest = |resource: Resource| {
            loads.iter().map(|load| load.get(resource)).fold(0.0, f64::max)
        };
        let full = |host: usize| {
            1.0 - self.room(host) / self.scenario.hosts[host].capacity.memory
        };
        self.side.samples.push(Sample {
            at: self.now,
            imbalance: differ.deviation,
            lacking: Amounts::sum(lacks),
            highest: Amounts::of(highest),
            fullest: (0..self.on.len()).map(full).fold(0.0, f64::max),
            moving: self.copies.0.len(),
        });
    }

    /// What came of it.
    pub(super) fn end(self) -> Side {
        let mut side = self.side;
        side.total = self.books.total();
        side.down = self.seats.iter().filter(|it| matches!(it, Seat::Down(_))).count();
        side.stayed = self.drs.map(Drs::stayed).unwrap_or_default();
        side.returned = side.returned(self.scenario.drs.hold.cooldown);
        side
    }
}

fn machines(number: usize) -> String {
    if number == 1 { "1 machine".into() } else { format!("{number} machines") }
}
