//! What is asked of where VMs are, and what cannot be asked together.

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What is asked.
    pub kind: Kind,
    /// Of these VMs.
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
    /// These two VMs are to be together by one rule, or several, and apart by this one.
    Apart {
        /// The rule that keeps them apart.
        rule: usize,
        /// The VMs.
        vms: [usize; 2],
    },
    /// A rule keeps more VMs apart than there are hosts for them.
    TooMany {
        /// The rule.
        rule: usize,
        /// The hosts that there are.
        hosts: usize,
    },
    /// There is no host on which this VM, and those that are to be with it, may be.
    Nowhere {
        /// The VM.
        vm: usize,
    },
}

impl Rule {
    /// How far it is from being kept: how many VMs would have to be elsewhere.
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

/// What of these rules can never be kept by so many VMs on so many hosts: by those that
/// must hold, and by each one that should, beside all that must. Too few hosts alone are
/// no reason to refuse one that should: it spreads VMs as far as they go.
pub fn clash(rules: &[Rule], vms: usize, hosts: usize) -> Option<Clash> {
    let shoulds = (0..rules.len()).filter(|at| !rules[*at].must).map(Some);
    let clash = |also| Counted { rules, also, vms, hosts }.clash();
    std::iter::once(None).chain(shoulds).find_map(clash)
}

/// The rules that must hold, and one more.
#[derive(Clone, Copy)]
struct Counted<'r> {
    rules: &'r [Rule],
    also: Option<usize>,
    vms: usize,
    hosts: usize,
}

impl<'r> Counted<'r> {
    fn those(self) -> impl Iterator<Item = (usize, &'r Rule)> {
        let all = self.rules.iter().enumerate();
        all.filter(move |(at, rule)| rule.must || self.also == Some(*at))
    }

    fn clash(self) -> Option<Clash> {
        let Counted { vms, hosts, .. } = self;
        let group = self.groups();
        // On which hosts each group may be.
        let mut allowed = vec![vec![true; hosts]; vms];
        for (_, rule) in self.those() {
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
        let mut concerned = self.those().flat_map(|(_, rule)| &rule.vms);
        if let Some(vm) = concerned.find(|vm| !allowed[group[**vm]].contains(&true)) {
            return Some(Clash::Nowhere { vm: *vm });
        }
        let apart = |(_, rule): &(usize, &Rule)| rule.kind == Kind::AntiAffinity;
        for (at, rule) in self.those().filter(apart) {
            for (from, one) in rule.vms.iter().enumerate() {
                let mut others = rule.vms[from + 1..].iter();
                if let Some(other) = others.find(|other| group[**other] == group[*one]) {
                    return Some(Clash::Apart { rule: at, vms: [*one, *other] });
                }
            }
            let any = |host: &usize| rule.vms.iter().any(|vm| allowed[group[*vm]][*host]);
            let those = (0..hosts).filter(any).count();
            if rule.vms.len() > those && (rule.must || those < hosts) {
                return Some(Clash::TooMany { rule: at, hosts: those });
            }
        }
        None
    }

    /// VMs that are together have the same number.
    fn groups(self) -> Vec<usize> {
        let mut group: Vec<usize> = (0..self.vms).collect();
        let together = |(_, rule): &(usize, &Rule)| rule.kind == Kind::Affinity;
        for (_, rule) in self.those().filter(together) {
            let Some(first) = rule.vms.first() else { continue };
            for vm in &rule.vms {
                let (from, to) = (group[*vm], group[*first]);
                group.iter_mut().filter(|it| **it == from).for_each(|it| *it = to);
            }
        }
        group
    }
}
