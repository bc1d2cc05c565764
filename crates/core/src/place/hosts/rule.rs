//! What is asked of where machines are, and what cannot be asked together.

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What is asked.
    pub kind: Kind,
    /// Of these machines.
    pub vms: Vec<usize>,
    /// Whether it must hold; else it should.
    pub must: bool,
}

/// What a rule asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All on the same host.
    Affinity,
    /// Each on another host.
    AntiAffinity,
    /// On these hosts.
    On(Vec<usize>),
    /// Not on these hosts.
    NotOn(Vec<usize>),
}

/// Rules that cannot all hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// These two machines must be together by one rule, or several, and apart by this one.
    Apart {
        /// The rule that keeps them apart.
        rule: usize,
        /// The machines.
        vms: [usize; 2],
    },
    /// A rule keeps more machines apart than there are hosts for them.
    TooMany {
        /// The rule.
        rule: usize,
        /// The hosts that there are.
        hosts: usize,
    },
    /// There is no host on which this machine, and those that must be with it, may be.
    Nowhere {
        /// The machine.
        vm: usize,
    },
}

impl Rule {
    /// How far it is from being kept: how many machines would have to be elsewhere.
    pub(super) fn broken(&self, at: impl Fn(usize) -> usize) -> usize {
        let hosts = || self.vms.iter().map(|vm| at(*vm));
        match &self.kind {
            Kind::On(allowed) => hosts().filter(|host| !allowed.contains(host)).count(),
            Kind::NotOn(denied) => hosts().filter(|host| denied.contains(host)).count(),
            Kind::Affinity | Kind::AntiAffinity => {
                let mut hosts: Vec<usize> = hosts().collect();
                hosts.sort_unstable();
                let same = hosts.chunk_by(|one, other| one == other).map(<[usize]>::len);
                match self.kind {
                    Kind::Affinity => hosts.len() - same.max().unwrap_or(0),
                    _ => hosts.len() - same.count(),
                }
            }
        }
    }
}

/// What of these rules cannot be kept together by so many machines on so many hosts; of
/// those that must hold.
pub fn clash(rules: &[Rule], vms: usize, hosts: usize) -> Option<Clash> {
    let group = groups(rules, vms);
    let musts = || rules.iter().enumerate().filter(|(_, rule)| rule.must);
    // On which hosts each group may be.
    let mut allowed = vec![vec![true; hosts]; vms];
    for (_, rule) in musts() {
        let may = |host: usize| match &rule.kind {
            Kind::On(on) => on.contains(&host),
            Kind::NotOn(not) => !not.contains(&host),
            Kind::Affinity | Kind::AntiAffinity => true,
        };
        for vm in &rule.vms {
            let those = allowed[group[*vm]].iter_mut().enumerate();
            those.for_each(|(host, allowed)| *allowed &= may(host));
        }
    }
    let concerned = || musts().flat_map(|(_, rule)| &rule.vms);
    if let Some(vm) = concerned().find(|vm| !allowed[group[**vm]].contains(&true)) {
        return Some(Clash::Nowhere { vm: *vm });
    }
    for (at, rule) in musts().filter(|(_, rule)| rule.kind == Kind::AntiAffinity) {
        for (from, one) in rule.vms.iter().enumerate() {
            let mut others = rule.vms[from + 1..].iter();
            if let Some(other) = others.find(|other| group[**other] == group[*one]) {
                return Some(Clash::Apart { rule: at, vms: [*one, *other] });
            }
        }
        let any = |host: &usize| rule.vms.iter().any(|vm| allowed[group[*vm]][*host]);
        let hosts = (0..hosts).filter(any).count();
        if rule.vms.len() > hosts {
            return Some(Clash::TooMany { rule: at, hosts });
        }
    }
    None
}

/// Machines that must be together have the same number.
fn groups(rules: &[Rule], vms: usize) -> Vec<usize> {
    let mut group: Vec<usize> = (0..vms).collect();
    for rule in rules.iter().filter(|rule| rule.must && rule.kind == Kind::Affinity) {
        let Some(first) = rule.vms.first() else { continue };
        for vm in &rule.vms {
            let (from, to) = (group[*vm], group[*first]);
            group.iter_mut().filter(|it| **it == from).for_each(|it| *it = to);
        }
    }
    group
}
