//! From a hall's text to the hall: names are looked up, ranges held, and what cannot be
//! had together is refused.

use sterna_core::schedule::{Moment, Weekday};
use sterna_core::{Bytes, Nanos};
use sterna_placement::hosts::{
    Amounts, Bounds, Clash, CooldownSettings, Inventory, Kind, Pool, Resource, Rule,
    Terms, Wish, admit, clash,
};
use toml::Spanned;

use super::load::told;
use super::scenario::{Failure, Host, Profile, Scenario, Settings, Shape, Vm};
use super::text::{
    Automation, DrsText, File, HostText, KindText, PoolText, ProfileText, RuleText,
    VmsText,
};
use crate::text::{As, Names, Numbers, Result, SIZE, Span, THINGS_MAX};

/// Machines at most: what each minute of a run looks at.
const VMS_MAX: u32 = 20_000;

/// Machines that rules speak of at most, all rules together: each pair of such a machine
/// and any other is looked at before the run.
const RULED_MAX: usize = 10_000;

/// A run is not shorter and not longer, in seconds: load changes with the minute, and more
/// than a month of it tells nothing new.
const LENGTH: (f64, f64) = (60.0, 31.0 * 86400.0);

/// Processors of a host, or of a machine: less cannot be asked for, and no more can be had.
const CPU: (f64, f64) = (0.01, 10_000.0);

/// What the settings of DRS may be, as `sterna drs set` has it; spans in seconds.
const THRESHOLD_MAX: u32 = 5;
const HOLD_MAX: u32 = 60;
const ROUND: (f64, f64) = (1.0, 3600.0);
const COOLDOWN: (f64, f64) = (0.0, 86_400.0);

/// Seconds between two rounds, if nothing is said.
const ROUND_USUAL: Nanos = Nanos::from_secs(60);

/// Shares at most, as of pools.
const SHARES_MAX: u32 = 1_000_000;

/// Makes a hall of what was read.
pub(super) fn resolve(text: &str, file: &File) -> Result<Scenario> {
    let numbers = Numbers(text);
    few(file, &numbers)?;
    let (mut host_names, mut hosts) = (Names::new(text, "host"), Vec::new());
    for it in &file.host {
        add_hosts(it, &numbers, &mut host_names, &mut hosts)?;
    }
    let (mut profile_names, mut profiles) = (Names::new(text, "profile"), Vec::new());
    for (number, it) in file.profile.iter().enumerate() {
        profile_names.add(&it.name, &[number])?;
        profiles.push(profile(it, &hosts, &numbers)?);
    }
    let (mut pool_names, mut pools) = (Names::new(text, "pool"), Vec::new());
    for (number, it) in file.pool.iter().enumerate() {
        // One comes after the one that it is in.
        let pool = pool(it, &pool_names, &numbers)?;
        pool_names.add(&it.name, &[number])?;
        pools.push(pool);
    }
    let starts = file.starts.as_ref();
    let mut scenario = Scenario {
        title: file.title.clone(),
        about: file.about.clone(),
        starts: starts.map_or(Moment::new(Weekday::ALL[0], 0), |it| it.0.0),
        length: numbers.span(&file.length, LENGTH)?,
        seed: file.seed.unwrap_or(1),
        drs: settings(&file.drs, &hosts, &numbers)?,
        hosts,
        profiles,
        pools,
        vms: Vec::new(),
        rules: Vec::new(),
        rule_names: Vec::new(),
        failures: Vec::new(),
    };
    let mut vm_names = Names::new(text, "machine");
    for it in &file.vms {
        let names = (&profile_names, &host_names, &pool_names);
        add_vms(it, &numbers, names, &mut vm_names, &mut scenario)?;
    }
    let mut rule_names = Names::new(text, "rule");
    for (number, it) in file.rule.iter().enumerate() {
        rule_names.add(&it.name, &[number])?;
        scenario.rules.push(rule(it, &numbers, &vm_names, &host_names)?);
        scenario.rule_names.push(it.name.get_ref().clone());
    }
    agree(file, &numbers, &scenario)?;
    scenario.failures = failures(file, &numbers, &host_names)?;
    Ok(scenario)
}

/// Not too many of any kind.
fn few(file: &File, numbers: &Numbers<'_>) -> Result<()> {
    numbers.few(file.profile.iter().map(|it| &it.name))?;
    numbers.few(file.pool.iter().map(|it| &it.name))?;
    numbers.few(file.rule.iter().map(|it| &it.name))?;
    numbers.few(file.failure.iter().map(|it| &it.host))
}

fn settings(it: &DrsText, hosts: &[Host], numbers: &Numbers<'_>) -> Result<Settings> {
    let (bounds, hold) = (Bounds::default(), CooldownSettings::default());
    let span = |it: &Option<Spanned<As<Span>>>, range, usual| {
        it.as_ref().map_or(Ok(usual), |it| numbers.span(it, range))
    };
    let threshold = u32::from(bounds.threshold);
    let threshold = numbers.count(it.threshold.as_ref(), THRESHOLD_MAX, threshold)?;
    let cooldown = span(&it.cooldown, COOLDOWN, hold.cooldown)?;
    Ok(Settings {
        wish: match it.automation {
            Automation::Manual => Wish::Nothing,
            Automation::Partial => Wish::Repairs,
            Automation::Full => Wish::All,
        },
        round: span(&it.round, ROUND, ROUND_USUAL)?,
        hold: CooldownSettings {
            rounds: numbers.count(it.hold.as_ref(), HOLD_MAX, hold.rounds)?,
            cooldown,
            longest: hold.longest.max(cooldown),
            ..hold
        },
        bounds: Bounds {
            // Five at most.
            threshold: threshold as u8,
            // One at a time is carried out, so no more have to be found.
            moves: 1,
            // No move is slower than that.
            speed: hosts.iter().map(|host| host.link).fold(f64::INFINITY, f64::min),
            ..bounds
        },
    })
}

fn add_hosts(
    it: &HostText,
    numbers: &Numbers<'_>,
    names: &mut Names<'_>,
    hosts: &mut Vec<Host>,
) -> Result<()> {
    let count = numbers.count(it.count.as_ref(), THINGS_MAX, 1)? as usize;
    let first = hosts.len();
    if first + count > THINGS_MAX as usize {
        return numbers.refuse(&it.name, format!("{THINGS_MAX} hosts are the most"));
    }
    let own: Vec<usize> = (first..first + count).collect();
    names.add(&it.name, &own)?;
    let memory = numbers.bytes(&it.memory, SIZE)? as f64;
    let capacity = Amounts { cpu: numbers.amount(&it.cpu, CPU)?, memory };
    let copies = numbers.count(it.copies.as_ref(), 1000, 2)?;
    let link = numbers.rate(it.link.as_ref())?.unwrap_or(Bounds::default().speed);
    for number in 1..=count {
        let name = numbered(it.name.get_ref(), number, count);
        hosts.push(Host { name, capacity, copies, link });
    }
    Ok(())
}

/// The name of one of so many.
fn numbered(name: &str, number: usize, count: usize) -> String {
    if count == 1 { name.to_owned() } else { format!("{name}-{number}") }
}

fn profile(it: &ProfileText, hosts: &[Host], numbers: &Numbers<'_>) -> Result<Profile> {
    let memory = numbers.bytes(&it.memory, SIZE)?;
    let size = Amounts { cpu: numbers.amount(&it.cpu, CPU)?, memory: memory as f64 };
    let most =
        |of: Resource| hosts.iter().map(|it| it.capacity.get(of)).fold(0.0, f64::max);
    if size.cpu > most(Resource::Cpu) {
        let most = most(Resource::Cpu);
        let what = format!("no host has {} processors: {most} are the most", size.cpu);
        return numbers.refuse(&it.cpu, what);
    }
    if size.memory > most(Resource::Memory) {
        let most = Bytes(most(Resource::Memory) as u64);
        let what = format!("no host has {} of memory: {most} is the most", Bytes(memory));
        return numbers.refuse(&it.memory, what);
    }
    let cpu = it.cpu_demand.as_ref().map(|it| numbers.amount(it, (0.0, size.cpu)));
    let held = it.memory_demand.as_ref().map(|it| numbers.bytes(it, (0, memory)));
    Ok(Profile {
        name: it.name.get_ref().clone(),
        size,
        demand: Amounts {
            cpu: cpu.transpose()?.unwrap_or(size.cpu),
            memory: held.transpose()?.unwrap_or(memory) as f64,
        },
        shape: shape(it, numbers)?,
        keeps: numbers.part(it.keeps.as_ref(), 1.0)?,
        varies: numbers.part(it.varies.as_ref(), 0.0)?,
    })
}

fn shape(it: &ProfileText, numbers: &Numbers<'_>) -> Result<Shape> {
    let idle = numbers.part(it.idle.as_ref(), 0.0)?;
    match (&it.busy, &it.hours, &it.idle) {
        (None, None, None) => Ok(Shape::Steady),
        (Some(busy), None, _) => Ok(Shape::Shift(busy.0.clone(), idle)),
        (None, Some(hours), None) => {
            let parts = hours.get_ref().iter().map(|it| it / 100.0);
            let parts: Vec<f64> = parts.filter(|it| (0.0..=1.0).contains(it)).collect();
            let parts = parts.try_into();
            parts.map(Shape::Hours).or_else(|_| {
                let what =
                    "write 24 percentages from 0 to 100, one for each hour of a day";
                numbers.refuse(hours, what.into())
            })
        }
        (Some(_), Some(hours), _) => {
            numbers.refuse(hours, "give `busy` or `hours`, not both".into())
        }
        (None, _, Some(idle)) => {
            numbers.refuse(idle, "`idle` goes with `busy`: give that, too".into())
        }
    }
}

fn pool(it: &PoolText, pools: &Names<'_>, numbers: &Numbers<'_>) -> Result<Pool> {
    let shares = |own: &Option<Spanned<u32>>| {
        numbers.count(own.as_ref().or(it.shares.as_ref()), SHARES_MAX, 1000)
    };
    let cpu = |it: &Option<Spanned<f64>>| {
        it.as_ref().map(|it| numbers.amount(it, (0.0, 1e7))).transpose()
    };
    let memory = |it: &Option<Spanned<As<Bytes>>>| {
        let bytes = |it| numbers.bytes(it, (0, 1 << 60)).map(|it| it as f64);
        it.as_ref().map(bytes).transpose()
    };
    let terms = |reservation: Option<f64>, limit: Option<f64>, shares: u32| {
        let reservation = reservation.unwrap_or(0.0);
        if limit.is_some_and(|limit| limit < reservation) {
            return numbers.refuse(&it.name, "the limit is below the reservation".into());
        }
        Ok(Terms { reservation, limit, shares })
    };
    let parent =
        it.parent.as_ref().map(|it| pools.get(it).map(|it| it[0])).transpose()?;
    Ok(Pool {
        parent,
        cpu: terms(
            cpu(&it.cpu_reservation)?,
            cpu(&it.cpu_limit)?,
            shares(&it.cpu_shares)?,
        )?,
        memory: terms(
            memory(&it.memory_reservation)?,
            memory(&it.memory_limit)?,
            shares(&it.memory_shares)?,
        )?,
    })
}

fn add_vms(
    it: &VmsText,
    numbers: &Numbers<'_>,
    (profiles, hosts, pools): (&Names<'_>, &Names<'_>, &Names<'_>),
    names: &mut Names<'_>,
    scenario: &mut Scenario,
) -> Result<()> {
    let count = numbers.count(it.count.as_ref(), VMS_MAX, 1)? as usize;
    let first = scenario.vms.len();
    if first + count > VMS_MAX as usize {
        return numbers.refuse(&it.name, format!("{VMS_MAX} machines are the most"));
    }
    let own: Vec<usize> = (first..first + count).collect();
    names.add(&it.name, &own)?;
    let profile = profiles.get(&it.profile)?[0];
    let pool = it.pool.as_ref().map(|it| pools.get(it).map(|it| it[0])).transpose()?;
    let on = it.on.as_ref().map(|it| hosts.get(it)).transpose()?;
    for k in 0..count {
        let host = on.map_or((first + k) % scenario.hosts.len(), |on| on[k % on.len()]);
        let name = numbered(it.name.get_ref(), k + 1, count);
        scenario.vms.push(Vm { name, profile, host, pool });
    }
    Ok(())
}

fn rule(
    it: &RuleText,
    numbers: &Numbers<'_>,
    vms: &Names<'_>,
    hosts: &Names<'_>,
) -> Result<Rule> {
    let those = |names: &[Spanned<String>], all: &Names<'_>| -> Result<Vec<usize>> {
        let mut numbers = Vec::new();
        for name in names.iter().take(RULED_MAX) {
            numbers.extend(all.get(name)?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    };
    let (vms, on) = (those(&it.vms, vms)?, those(&it.hosts, hosts)?);
    if vms.is_empty() {
        return numbers.refuse(&it.name, "name machines in `vms`".into());
    }
    let of_hosts = matches!(it.kind, KindText::On | KindText::NotOn);
    if of_hosts == on.is_empty() {
        let what = "name `hosts` where `kind` is `on` or `not-on`, and else none";
        return numbers.refuse(&it.name, what.into());
    }
    let kind = match it.kind {
        KindText::Affinity => Kind::Affinity,
        KindText::AntiAffinity => Kind::AntiAffinity,
        KindText::On => Kind::On(on),
        KindText::NotOn => Kind::NotOn(on),
    };
    Ok(Rule { kind, vms, must: it.must })
}

/// What is reserved can be had, and rules that must hold can hold together.
fn agree(file: &File, numbers: &Numbers<'_>, scenario: &Scenario) -> Result<()> {
    let all = Amounts::default();
    let inventory = Inventory {
        hosts: scenario
            .hosts
            .iter()
            .map(|it| sterna_placement::hosts::Host { capacity: it.capacity })
            .collect(),
        pools: scenario.pools.clone(),
        vms: scenario.vms.iter().map(|it| told(all, it.host, it.pool, all)).collect(),
        rules: Vec::new(),
    };
    if let Err(oversold) = admit(&inventory) {
        let amount = |amount: f64| match oversold.resource {
            Resource::Cpu => format!("{amount} processors"),
            Resource::Memory => Bytes(amount as u64).to_string(),
        };
        let (reserved, has) = (amount(oversold.reserved), amount(oversold.has));
        let who = oversold.pool.map_or("all hosts have", |_| "this pool has reserved");
        let at = &file.pool[oversold.pool.unwrap_or(0)].name;
        let what = format!("pools would reserve {reserved}, and {who} {has}");
        return numbers.refuse(at, what);
    }
    let mut ruled = 0;
    for (rule, it) in scenario.rules.iter().zip(&file.rule) {
        ruled += rule.vms.len();
        if ruled > RULED_MAX {
            let what =
                format!("rules speak of {RULED_MAX} machines at most, all together");
            return numbers.refuse(&it.name, what);
        }
    }
    let found = clash(&scenario.rules, scenario.vms.len(), scenario.hosts.len());
    let Some(clash) = found else { return Ok(()) };
    let name = |vm: usize| &scenario.vms[vm].name;
    let (rule, what) = match clash {
        Clash::Apart { rule, vms: [one, other] } => {
            let (one, other) = (name(one), name(other));
            (rule, format!("{one} and {other} must be together by other rules"))
        }
        Clash::TooMany { rule, hosts } => {
            let vms = scenario.rules[rule].vms.len();
            (rule, format!("it keeps {vms} machines apart, on {hosts} hosts"))
        }
        Clash::Nowhere { vm } => {
            let speaks = |rule: &Rule| rule.must && rule.vms.contains(&vm);
            let rule = scenario.rules.iter().position(speaks).unwrap_or(0);
            (rule, format!("there would be no host on which {} may be", name(vm)))
        }
    };
    numbers.refuse(&file.rule[rule].name, what)
}

fn failures(
    file: &File,
    numbers: &Numbers<'_>,
    hosts: &Names<'_>,
) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    for it in &file.failure {
        let at = it.at.0.nanos();
        let back = it.lasts.as_ref().map(|lasts| at.plus(lasts.0.nanos()));
        let restart = it.restart.as_ref().map(|restart| restart.0.nanos());
        let those = hosts.get(&it.host)?;
        failures.extend(those.iter().map(|host| Failure {
            host: *host,
            at,
            back,
            restart,
        }));
        if failures.len() > THINGS_MAX as usize {
            return numbers
                .refuse(&it.host, format!("{THINGS_MAX} failures are the most"));
        }
    }
    Ok(failures)
}
