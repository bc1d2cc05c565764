//! From loads and copies to flows: what each asks of which station.

use super::pool::Pool;
use super::scenario::{Copier, Datastore, Profile, Scenario};
use super::solve::{Flow, Station, Use, Wait};

/// The stations of a scenario, and what stands for what.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) stations: Vec<Station>,
    pub(super) pools: Vec<Pool>,
    datastores: Vec<Datastore>,
    copier: Copier,
    /// The first link's station.
    links: usize,
    link_rates: Vec<f64>,
    /// The first host's station, if their links are told.
    hosts: Option<(usize, f64)>,
}

/// A copy, as far as it is the same as others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stream {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The part of what is read that is written.
    pub(super) written: f64,
    /// Bytes per second at most.
    pub(super) limit: Option<f64>,
    pub(super) host: usize,
}

impl Stage {
    pub(super) fn new(scenario: &Scenario) -> Stage {
        let mut stations = Vec::new();
        let mut pools = Vec::new();
        for plan in &scenario.arrays {
            let own = (stations.len(), stations.len() + 1);
            stations.push(Station { servers: f64::from(plan.model.spindles()) });
            stations.push(Station { servers: 1.0 });
            pools.push(Pool::new(plan.model.clone(), plan.width, plan.sorted, own));
        }
        let links = stations.len();
        let link_rates: Vec<f64> = scenario.links.iter().map(|it| it.rate).collect();
        stations.extend(link_rates.iter().map(|_| Station { servers: 1.0 }));
        let hosts = scenario.host_link.map(|rate| (stations.len(), rate));
        if hosts.is_some() {
            stations.extend((0..scenario.hosts).map(|_| Station { servers: 1.0 }));
        }
        let (datastores, copier) = (scenario.datastores.clone(), scenario.copier);
        Stage { stations, pools, datastores, copier, links, link_rates, hosts }
    }

    pub(super) fn pool(&self, datastore: usize) -> &Pool {
        &self.pools[self.datastores[datastore].array]
    }

    /// So many disks of machines of a profile on a datastore, at a part of their work.
    pub(super) fn load(
        &self,
        profile: &Profile,
        datastore: usize,
        disks: f64,
        part: f64,
    ) -> Flow {
        let pool = self.pool(datastore);
        let model = &pool.model;
        let (bytes, reads, random) = (profile.bytes, profile.reads, profile.random);
        let each = f64::from(profile.disks);
        let outstanding = f64::from(profile.outstanding) / each;
        let misses = reads * random * (1.0 - model.hits());
        let streamed = reads * (1.0 - random);
        let mut uses = vec![pool.link_use(bytes)];
        if misses > 0.0 {
            uses.push(pool.random_read(bytes, misses));
        }
        if streamed > 0.0 {
            uses.push(pool.stream_read(bytes * streamed, outstanding * bytes));
        }
        self.writes(profile, datastore, 1.0 - reads, &mut uses);
        self.over_links(datastore, bytes, &mut uses);
        let overhead = model.overhead().as_secs_f64();
        let (ack, cached) = (model.ack().as_secs_f64(), model.caches_writes());
        let mut fixed = reads * overhead + uses[0].takes;
        let mut base = misses;
        // A client that does nothing else goes as fast as its stream is fetched.
        let mut ahead = 0.0;
        if streamed == 1.0 {
            ahead = f64::from(model.prefetch()) * super::pool::ELEMENT / bytes;
            base = 1.0;
        }
        // Parts of a request are under way at once: one operation's time is waited for.
        let of = |it: &Use| it.takes + it.seek;
        if misses > 0.0 {
            fixed += misses * uses[1].takes;
        }
        let mut pressed = 0.0;
        let writes = 1.0 - reads;
        if cached {
            fixed += writes * ack;
            pressed += writes;
        } else if writes > 0.0 {
            let own = uses.iter().rev().find(|it| it.station == pool.spindles());
            fixed += writes * (overhead + own.map_or(0.0, of));
            base += writes;
        }
        let mut waits = vec![Wait { station: pool.spindles(), base, pressed }];
        waits.extend(
            uses.iter().filter(|it| it.station != pool.spindles()).map(|it| Wait {
                station: it.station,
                base: 1.0,
                pressed: 0.0,
            }),
        );
        let target = profile.iops / each * part;
        Flow { many: disks, target, outstanding, ahead, fixed, waits, uses }
    }

    /// What the writes among a profile's requests cost; `part` of them are.
    fn writes(
        &self,
        profile: &Profile,
        datastore: usize,
        part: f64,
        uses: &mut Vec<Use>,
    ) {
        let pool = self.pool(datastore);
        let random = part * profile.random;
        let in_place = part - random;
        let coalesces = self.datastores[datastore].coalesces || pool.model.coalesces();
        if coalesces && part > 0.0 {
            uses.push(pool.stripe_write(profile.bytes * part, false));
            return;
        }
        if in_place > 0.0 {
            uses.push(pool.stripe_write(profile.bytes * in_place, true));
        }
        if random > 0.0 {
            uses.push(pool.small_write(profile.bytes, random));
        }
    }

    fn over_links(&self, datastore: usize, bytes: f64, uses: &mut Vec<Use>) {
        if let Some(link) = self.datastores[datastore].link {
            let takes = bytes / self.link_rates[link];
            uses.push(server(self.links + link, takes));
        }
    }

    /// What a running machine writes to the destination as well, so many requests a
    /// second. It waits for nothing there: what is overdue is copied anew.
    pub(super) fn mirrored(&self, profile: &Profile, to: usize, rate: f64) -> Flow {
        let mut uses = vec![self.pool(to).link_use(profile.bytes)];
        self.writes(profile, to, 1.0, &mut uses);
        self.over_links(to, profile.bytes, &mut uses);
        let (outstanding, fixed) = (rate * 10.0, 1.0);
        Flow {
            many: 1.0,
            target: rate,
            outstanding,
            ahead: 0.0,
            fixed,
            waits: vec![],
            uses,
        }
    }

    /// So many copies.
    pub(super) fn copies(&self, stream: &Stream, many: f64) -> Flow {
        let (source, destination) = (self.pool(stream.from), self.pool(stream.to));
        let chunk = self.copier.chunk as f64;
        let outstanding = f64::from(self.copier.in_flight);
        let written = chunk * stream.written;
        let read = source.stream_read(chunk, outstanding * chunk);
        let model = &destination.model;
        let mut uses = vec![source.link_use(chunk), destination.link_use(written), read];
        uses.push(destination.stripe_write(written, true));
        self.over_links(stream.from, chunk, &mut uses);
        self.over_links(stream.to, written, &mut uses);
        if let Some((first, rate)) = self.hosts {
            uses.push(server(first + stream.host, (chunk + written) / rate));
        }
        let (overhead, written) = (model.overhead().as_secs_f64(), stream.written);
        let mut waits = Vec::new();
        let at = |station, base, pressed| Wait { station, base, pressed };
        // A chunk's elements may be fetched already; that is what runs ahead.
        waits.push(at(source.spindles(), 1.0, 0.0));
        let mut fixed = self.copier.fixed + source.model.overhead().as_secs_f64();
        if model.caches_writes() {
            fixed += written * model.ack().as_secs_f64();
            waits.push(at(destination.spindles(), 0.0, written));
        } else {
            fixed += written * (overhead + uses[3].takes + uses[3].seek);
            waits.push(at(destination.spindles(), written, 0.0));
        }
        for it in &uses {
            if it.station != source.spindles() && it.station != destination.spindles() {
                fixed += it.takes;
                waits.push(at(it.station, 1.0, 0.0));
            }
        }
        let ahead = f64::from(source.model.prefetch()) * super::pool::ELEMENT / chunk;
        let target = stream.limit.map_or(f64::INFINITY, |limit| limit / chunk);
        Flow { many, target, outstanding, ahead, fixed, waits, uses }
    }

    /// Bytes of a chunk.
    pub(super) fn chunk(&self) -> f64 {
        self.copier.chunk as f64
    }

    /// Whether a datastore answers.
    pub(super) fn answers(&self, datastore: usize) -> bool {
        !self.pool(datastore).down
    }
}

fn server(station: usize, takes: f64) -> Use {
    Use { station, operations: 1.0, takes, seek: 0.0, urgent: false }
}
