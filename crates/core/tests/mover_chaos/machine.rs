//! A QEMU: a guest's disk, a mirror job, and who answers for it.
//!
//! What is done here is done at once; how long it takes, and whether anybody hears of it,
//! is the driver's.

use std::collections::BTreeSet;

use sterna_core::mover::{At, Ended, Failure, GivenUp, Job, Owner};

use crate::images::{Images, Inode, OTHER, SOURCE};

/// Where a mirror job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Blocks are copied; once none differs, it is ready, and stays so.
    Running { ready: bool, completing: bool },
    /// It has ended so.
    Over(Ended),
}

#[derive(Clone, Debug)]
pub(crate) struct Mirror {
    pub(crate) from: Inode,
    pub(crate) to: Inode,
    pub(crate) dirty: BTreeSet<usize>,
    pub(crate) phase: Phase,
    pub(crate) halted: bool,
}

/// One process of QEMU.
#[derive(Clone, Debug)]
pub(crate) struct Qemu {
    /// The image of the disk, while it is plugged in.
    pub(crate) device: Option<Inode>,
    pub(crate) mirror: Option<Mirror>,
    /// The image that our node has open.
    pub(crate) node: Option<Inode>,
    pub(crate) hangs: bool,
}

impl Qemu {
    pub(crate) fn new(device: Option<Inode>) -> Self {
        Qemu { device, mirror: None, node: None, hangs: false }
    }

    /// Whether a job of ours has not ended.
    pub(crate) fn copies_to(&self, image: Inode) -> bool {
        self.mirror.as_ref().is_some_and(|mirror| {
            mirror.to == image && matches!(mirror.phase, Phase::Running { .. })
        })
    }

    pub(crate) fn write(&mut self, images: &mut Images, block: usize, value: u64) {
        let Some(device) = self.device else { return };
        images.all[device].blocks[block] = value;
        if let Some(mirror) = &mut self.mirror
            && mirror.from == device
            && matches!(mirror.phase, Phase::Running { .. })
        {
            mirror.dirty.insert(block);
        }
    }

    /// The job goes a step further. Says whether it has switched over.
    pub(crate) fn go_on(&mut self, images: &mut Images) -> bool {
        let Some(mirror) = self.mirror.as_mut().filter(|_| !self.hangs) else {
            return false;
        };
        let Phase::Running { ready, completing } = &mut mirror.phase else {
            return false;
        };
        if let Some(block) = mirror.dirty.first().copied() {
            if !mirror.halted {
                mirror.dirty.remove(&block);
                let value = images.all[mirror.from].blocks[block];
                images.all[mirror.to].blocks[block] = value;
            }
            return false;
        }
        *ready = true;
        if !*completing {
            return false;
        }
        mirror.phase = Phase::Over(Ended::Clean);
        let to = mirror.to;
        if self.device == Some(mirror.from) {
            self.device = Some(to);
            images.all[to].was_used = true;
        }
        true
    }

    pub(crate) fn is_ready(&self) -> bool {
        let phase = self.mirror.as_ref().map(|mirror| &mirror.phase);
        matches!(phase, Some(Phase::Running { ready: true, .. }))
    }

    pub(crate) fn look(&self, owner: Owner, images: &Images) -> Job {
        let Some(mirror) = &self.mirror else { return self.without_job(owner, images) };
        let done = (images.all[SOURCE].blocks.len() - mirror.dirty.len()) as u64;
        match &mirror.phase {
            Phase::Running { completing: true, .. } if owner == Owner::Libvirt => {
                Job::Switching
            }
            Phase::Running { ready: true, .. } => Job::Ready { done },
            Phase::Running { .. } => Job::Copying { done, total: 99 },
            Phase::Over(_) if owner == Owner::Libvirt => self.without_job(owner, images),
            Phase::Over(ended) => Job::Ended(ended.clone()),
        }
    }

    /// libvirt knows a copy by where the disk is.
    fn without_job(&self, owner: Owner, images: &Images) -> Job {
        match self.at(images) {
            At::Destination if owner == Owner::Libvirt => Job::Ended(Ended::Clean),
            _ => Job::Unknown,
        }
    }

    pub(crate) fn at(&self, images: &Images) -> At {
        at(self.device, images)
    }

    /// The nodes that a copy needs.
    pub(crate) fn add_node(&mut self, to: Inode) -> Result<(), Failure> {
        if self.node.is_some() {
            return Err(Failure::Refused("there is such a node".into()));
        }
        self.node = Some(to);
        Ok(())
    }

    pub(crate) fn begin(&mut self, images: &Images, halted: bool) -> Result<(), Failure> {
        let (Some(from), Some(to)) = (self.device, self.node) else {
            return Err(Failure::Other("there is no such disk".into()));
        };
        if self.mirror.is_some() {
            return Err(Failure::Refused("there is such a job".into()));
        }
        let dirty = (0..images.all[from].blocks.len()).collect();
        let phase = Phase::Running { ready: false, completing: false };
        self.mirror = Some(Mirror { from, to, dirty, phase, halted });
        Ok(())
    }

    pub(crate) fn set_speed(&mut self, speed: u64) -> Result<(), Failure> {
        match &mut self.mirror {
            Some(mirror) if matches!(mirror.phase, Phase::Running { .. }) => {
                mirror.halted = speed == 1;
                Ok(())
            }
            _ => Err(Failure::Refused("there is no such job".into())),
        }
    }

    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        let phase = self.mirror.as_mut().map(|mirror| &mut mirror.phase);
        match phase {
            Some(Phase::Running { ready: true, completing }) => {
                *completing = true;
                Ok(())
            }
            _ => Err(Failure::Refused("the job is not ready".into())),
        }
    }

    /// Ends the job before it switches over, if that is still to come.
    pub(crate) fn cancel(&mut self) {
        if let Some(mirror) = &mut self.mirror
            && matches!(mirror.phase, Phase::Running { .. })
        {
            mirror.phase = Phase::Over(Ended::Cancelled);
        }
    }

    /// The same of somebody who wants both images as they are, if they are the same.
    pub(crate) fn cancel_softly(&mut self) {
        match &mut self.mirror {
            Some(mirror) if self.device.is_none() || mirror.dirty.is_empty() => {
                match mirror.phase {
                    Phase::Running { ready: true, completing: false } => {
                        mirror.phase = Phase::Over(Ended::Clean);
                    }
                    Phase::Running { completing: true, .. } => {}
                    _ => self.cancel(),
                }
            }
            _ => self.cancel(),
        }
    }

    /// Forgets the job and the node, as far as it comes.
    pub(crate) fn give_up(&mut self, owner: Owner, images: &Images, far: u64) -> GivenUp {
        let mut found = GivenUp::Nothing;
        if self.mirror.is_some() {
            self.cancel();
            if far == 0 {
                return GivenUp::Something;
            }
            let ended = self.mirror.take().map(|mirror| mirror.phase);
            found = match ended {
                Some(Phase::Over(Ended::Clean)) => GivenUp::Something,
                _ => GivenUp::Undone,
            };
        }
        if far == 1 {
            return found;
        }
        let is_used = self.node.is_some() && self.node == self.device;
        if self.node.is_some() && !is_used {
            self.node = None;
            if found == GivenUp::Nothing {
                found = GivenUp::Something;
            }
        }
        match owner {
            Owner::Qemu => found,
            Owner::Libvirt if self.at(images) == At::Destination => GivenUp::Nothing,
            Owner::Libvirt if found == GivenUp::Nothing => found,
            Owner::Libvirt => GivenUp::Something,
        }
    }
}

/// Where a disk with this image is, by the images' names.
pub(crate) fn at(device: Option<Inode>, images: &Images) -> At {
    match device {
        None => At::Nowhere,
        Some(SOURCE) => At::Source,
        Some(OTHER) => At::Elsewhere("another image".into()),
        // QEMU knows names, and that of a file that was replaced is the same.
        Some(image) => {
            assert!(!images.all[image].foreign, "nobody gives it that one");
            At::Destination
        }
    }
}
