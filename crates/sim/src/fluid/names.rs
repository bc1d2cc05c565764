//! From a scenario's text to the scenario: names are looked up, ranges held.

use std::collections::BTreeMap;

use sterna_core::schedule::{Moment, Weekday};

use super::scenario::{
    ArrayPlan, Copier, Datastore, Failure, LinkPlan, Profile, Scenario, Vm, Wave,
};
use super::text::{
    DatastoreText, Destage, File, ProfileText, VmsText, Waiting, WaveText,
};
use crate::text::{Names, Numbers, RATE, Result, SIZE, THINGS_MAX};

/// Machines and disks of a scenario at most: what a GiB of memory holds.
const VMS_MAX: usize = 100_000;
const DISKS_MAX: u64 = 500_000;

/// Chunks under way, and what vCenter allows: two machines a host, eight a datastore.
const IN_FLIGHT: u32 = 32;
const HOST_COPIES: u32 = 2;
const DATASTORE_COPIES: u32 = 8;

/// Requests of a machine under way at most, if nothing is said: what a virtual SCSI
/// disk takes.
const OUTSTANDING: u32 = 32;

/// Makes a scenario of what was read.
pub(super) fn resolve(text: &str, file: &File) -> Result<Scenario> {
    let numbers = Numbers(text);
    few(file, &numbers)?;
    let mut arrays = Names::new(text, "array");
    let mut array_plans = Vec::new();
    for (number, it) in file.array.iter().enumerate() {
        arrays.add(&it.name, &[number])?;
        let width = it.stream_width.as_ref();
        array_plans.push(ArrayPlan {
            name: it.name.get_ref().clone(),
            model: it.model.0.clone(),
            width: width.map(|it| numbers.count(Some(it), 1024, 1)).transpose()?,
            sorted: it.destage == Destage::Sorted,
        });
    }
    let mut links = Names::new(text, "link");
    let mut link_plans = Vec::new();
    for (number, it) in file.link.iter().enumerate() {
        links.add(&it.name, &[number])?;
        let rate = numbers.bytes(&it.rate, RATE)? as f64;
        link_plans.push(LinkPlan { name: it.name.get_ref().clone(), rate });
    }
    let mut stores = Names::new(text, "datastore");
    let mut datastores = Vec::new();
    for it in &file.datastore {
        add_datastores(it, &numbers, (&arrays, &links), &mut stores, &mut datastores)?;
    }
    let mut profile_names = Names::new(text, "profile");
    let mut profiles = Vec::new();
    for (number, it) in file.profile.iter().enumerate() {
        profile_names.add(&it.name, &[number])?;
        profiles.push(profile(it, &numbers)?);
    }
    let tiles = tiles(text, file, &numbers, &profile_names)?;
    let hosts = numbers.count(Some(&file.host.count), THINGS_MAX, 1)?;
    let mut scenario = Scenario {
        title: file.title.clone(),
        about: file.about.clone(),
        starts: file.starts.as_ref().map_or(Moment::new(Weekday::ALL[0], 0), |it| it.0.0),
        length: file.length.as_ref().map_or(0.0, |it| it.0.0),
        waiting_work: file.waiting == Waiting::Work,
        copier: copier(file, &numbers)?,
        arrays: array_plans,
        links: link_plans,
        datastores,
        hosts,
        host_copies: numbers.count(file.host.copies.as_ref(), 1000, HOST_COPIES)?,
        host_link: numbers.rate(file.host.link.as_ref())?,
        profiles,
        vms: Vec::new(),
        waves: Vec::new(),
        failures: Vec::new(),
    };
    let mut sets = Names::new(text, "set of machines");
    for it in &file.vms {
        let names = (&profile_names, &tiles, &stores);
        add_vms(it, &numbers, names, &mut sets, &mut scenario)?;
    }
    for it in &file.wave {
        let wave = wave(it, &numbers, (&sets, &stores), &scenario)?;
        scenario.waves.push(wave);
    }
    scenario.failures = failures(file, &numbers, &arrays)?;
    Ok(scenario)
}

/// Not too many of any kind.
fn few(file: &File, numbers: &Numbers<'_>) -> Result<()> {
    numbers.few(file.array.iter().map(|it| &it.name))?;
    numbers.few(file.link.iter().map(|it| &it.name))?;
    numbers.few(file.profile.iter().map(|it| &it.name))?;
    numbers.few(file.tile.iter().map(|it| &it.name))?;
    numbers.few(file.wave.iter().map(|it| &it.to))?;
    numbers.few(file.failure.iter().map(|it| &it.array))
}

fn copier(file: &File, numbers: &Numbers<'_>) -> Result<Copier> {
    let usual = Copier { in_flight: IN_FLIGHT, chunk: 64 << 10, fixed: 0.0 };
    let Some(it) = &file.copier else { return Ok(usual) };
    let chunk = it.chunk.as_ref().map(|it| numbers.bytes(it, (4 << 10, 64 << 20)));
    Ok(Copier {
        in_flight: numbers.count(it.in_flight.as_ref(), 1024, usual.in_flight)?,
        chunk: chunk.transpose()?.unwrap_or(usual.chunk),
        fixed: it.fixed.as_ref().map_or(0.0, |it| it.0.0),
    })
}

fn add_datastores(
    it: &DatastoreText,
    numbers: &Numbers<'_>,
    (arrays, links): (&Names<'_>, &Names<'_>),
    names: &mut Names<'_>,
    datastores: &mut Vec<Datastore>,
) -> Result<()> {
    let count = numbers.count(it.count.as_ref(), THINGS_MAX, 1)? as usize;
    let first = datastores.len();
    if first + count > THINGS_MAX as usize {
        return numbers.refuse(&it.name, format!("{THINGS_MAX} datastores are the most"));
    }
    let own: Vec<usize> = (first..first + count).collect();
    names.add(&it.name, &own)?;
    let array = arrays.get(&it.array)?[0];
    let link = it.link.as_ref().map(|it| links.get(it).map(|it| it[0])).transpose()?;
    let kind = it.name.get_ref();
    for number in 1..=count {
        let name = if count == 1 { kind.clone() } else { format!("{kind}-{number}") };
        let copies = numbers.count(it.copies.as_ref(), 1000, DATASTORE_COPIES)?;
        let (coalesces, thin, kind) = (it.coalesce, it.thin, kind.clone());
        datastores.push(Datastore { name, kind, array, link, coalesces, thin, copies });
    }
    Ok(())
}

fn profile(it: &ProfileText, numbers: &Numbers<'_>) -> Result<Profile> {
    let size = numbers.bytes(&it.size, SIZE)?;
    let written = match &it.written {
        Some(it) => numbers.bytes(it, (0, size))?,
        None => size,
    };
    let iops = match &it.iops {
        None => f64::INFINITY,
        Some(it) if (0.0..=1e9).contains(it.get_ref()) => *it.get_ref(),
        Some(it) => {
            return numbers.refuse(it, "write requests per second, up to 1e9".into());
        }
    };
    let request = it.request.as_ref().map(|it| numbers.bytes(it, (512, 16 << 20)));
    Ok(Profile {
        name: it.name.get_ref().clone(),
        iops,
        outstanding: numbers.count(it.outstanding.as_ref(), 65536, OUTSTANDING)?,
        bytes: request.transpose()?.unwrap_or(8 << 10) as f64,
        reads: numbers.part(it.read.as_ref(), 0.7)?,
        random: numbers.part(it.random.as_ref(), 1.0)?,
        size,
        written,
        disks: numbers.count(it.disks.as_ref(), 64, 1)?,
        busy: it.busy.as_ref().map(|it| it.0.clone()),
        idle: numbers.part(it.idle.as_ref(), 0.0)?,
    })
}

/// What each tile has: profiles, and how many of each.
type Tiles = BTreeMap<String, Vec<(usize, u32)>>;

fn tiles(
    text: &str,
    file: &File,
    numbers: &Numbers<'_>,
    profiles: &Names<'_>,
) -> Result<Tiles> {
    let mut names = Names::new(text, "tile");
    let mut tiles = Tiles::new();
    for (number, it) in file.tile.iter().enumerate() {
        names.add(&it.name, &[number])?;
        let mut vms = Vec::new();
        for (profile, count) in &it.vms {
            vms.push((profiles.get(profile)?[0], numbers.count(Some(count), 10_000, 1)?));
        }
        // In the order in which the profiles are written.
        vms.sort_unstable();
        tiles.insert(it.name.get_ref().clone(), vms);
    }
    Ok(tiles)
}

fn add_vms(
    it: &VmsText,
    numbers: &Numbers<'_>,
    (profiles, tiles, stores): (&Names<'_>, &Tiles, &Names<'_>),
    sets: &mut Names<'_>,
    scenario: &mut Scenario,
) -> Result<()> {
    let kinds = match (&it.tile, &it.profile) {
        (Some(tile), None) => match tiles.get(tile.get_ref()) {
            Some(kinds) => kinds.clone(),
            None => {
                let known: Vec<&str> = tiles.keys().map(String::as_str).collect();
                let known =
                    if known.is_empty() { "none".into() } else { known.join(", ") };
                let what = format!("no tile `{}`; there are {known}", tile.get_ref());
                return numbers.refuse(tile, what);
            }
        },
        (None, Some(profile)) => vec![(profiles.get(profile)?[0], 1)],
        _ => return numbers.refuse(&it.name, "give a tile or a profile".into()),
    };
    let count = numbers.count(it.count.as_ref(), VMS_MAX as u32, 1)? as usize;
    let first = scenario.vms.last().map_or(0, |vm| vm.set + 1);
    let own: Vec<usize> = (first..first + count).collect();
    sets.add(&it.name, &own)?;
    let on = stores.get(&it.on)?;
    for k in 0..count {
        for &(profile, many) in &kinds {
            for _ in 0..many {
                let host = scenario.vms.len() % scenario.hosts as usize;
                let (set, datastore) = (first + k, on[k % on.len()]);
                scenario.vms.push(Vm { set, profile, datastore, host });
            }
        }
        if scenario.vms.len() > VMS_MAX {
            break;
        }
    }
    if scenario.vms.len() > VMS_MAX || scenario.disks() > DISKS_MAX {
        let most = format!("{VMS_MAX} machines with {DISKS_MAX} disks");
        return numbers
            .refuse(&it.name, format!("{most} are the most that there can be"));
    }
    Ok(())
}

fn wave(
    it: &WaveText,
    numbers: &Numbers<'_>,
    (sets, stores): (&Names<'_>, &Names<'_>),
    scenario: &Scenario,
) -> Result<Wave> {
    let to = stores.get(&it.to)?;
    let mut moves = Vec::new();
    for name in &it.moves {
        let those = sets.get(name)?;
        let (first, last) = (those[0], those[those.len() - 1]);
        let from = scenario.vms.partition_point(|vm| vm.set < first);
        let until = scenario.vms.partition_point(|vm| vm.set <= last);
        for vm in from..until {
            // The set's number among those of its name is the datastore's, too.
            let place = scenario.place_of(vm);
            moves.push((vm, to[place % to.len()]));
        }
    }
    if moves.is_empty() {
        return numbers
            .refuse(&it.to, "nothing is moved; name machines in `move`".into());
    }
    Ok(Wave {
        name: it.name.clone(),
        at: it.at.as_ref().map_or(0.0, |it| it.0.0),
        moves,
        stopped: it.stopped,
        window: it.window.as_ref().map(|it| it.0.clone()),
        limit: numbers.rate(it.limit.as_ref())?,
    })
}

fn failures(
    file: &File,
    numbers: &Numbers<'_>,
    arrays: &Names<'_>,
) -> Result<Vec<Failure>> {
    let failure = |it: &super::text::FailureText| {
        let slower = match &it.slower {
            Some(it) if (1.0..=1000.0).contains(it.get_ref()) => Some(*it.get_ref()),
            Some(it) => {
                return numbers
                    .refuse(it, "write how many times slower, 1 to 1000".into());
            }
            None => None,
        };
        let array = arrays.get(&it.array)?[0];
        Ok(Failure { array, at: it.at.0.0, lasts: it.lasts.0.0, slower })
    };
    file.failure.iter().map(failure).collect()
}

impl Scenario {
    /// The place of a machine's datastore among those of its kind.
    fn place_of(&self, vm: usize) -> usize {
        let at = self.vms[vm].datastore;
        let kind = &self.datastores[at].kind;
        self.datastores[..at].iter().filter(|it| it.kind == *kind).count()
    }
}
