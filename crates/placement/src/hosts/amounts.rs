//! So much of each resource.

/// What hosts have and VMs want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
}

impl Resource {
    /// Both.
    pub const ALL: [Resource; 2] = [Resource::Cpu, Resource::Memory];
}

/// So much of each resource; also the load of a host, in parts of what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amounts {
    /// Processors (cores).
    pub cpu: f64,
    /// Memory, in bytes.
    pub memory: f64,
}

impl Amounts {
    /// So much of each.
    pub fn of(mut amount: impl FnMut(Resource) -> f64) -> Amounts {
        Amounts { cpu: amount(Resource::Cpu), memory: amount(Resource::Memory) }
    }

    /// Of one of them.
    pub fn get(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
        }
    }

    /// With so much of one of them.
    #[must_use]
    pub fn with(self, resource: Resource, amount: f64) -> Amounts {
        match resource {
            Resource::Cpu => Amounts { cpu: amount, ..self },
            Resource::Memory => Amounts { memory: amount, ..self },
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, more: Amounts) -> Amounts {
        Amounts::of(|it| self.get(it) + more.get(it))
    }

    /// One without the other.
    #[must_use]
    pub fn minus(self, less: Amounts) -> Amounts {
        Amounts::of(|it| self.get(it) - less.get(it))
    }

    /// In parts of what there is; nothing of what is not there.
    #[must_use]
    pub fn over(self, all: Amounts) -> Amounts {
        let part = |amount: f64, all: f64| if all > 0.0 { amount / all } else { 0.0 };
        Amounts::of(|it| part(self.get(it), all.get(it)))
    }

    /// The sum of many.
    pub fn sum(all: impl Iterator<Item = Amounts>) -> Amounts {
        all.fold(Amounts::default(), Amounts::plus)
    }
}
