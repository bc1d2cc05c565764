//! A VM that libvirt owns.
//!
//! libvirt makes the destination's file, because it alone knows as whom QEMU runs and how
//! files must be labelled; and it changes the VM's kept XML at the pivot, so that the
//! next start has the new disk. That is read back and not believed
//! ([`Managed::put_away`]).
//!
//! A disk has one job at a time in libvirt, so a copy needs no name there: it is the
//! mirror to the copy's destination.

use std::time::Duration;

use crate::copy::{GENTLE, Place};
use crate::drive::{Drive, Unmovable, is_known};
use crate::process::Process;
use crate::qmp::{ANSWER_WITHIN, Stats};
use crate::usage::{number_of_domain, of_domain};
use crate::virsh::{DomainDisk, Virsh, VirshError, nbd_disk, probe};
use crate::{Copy, CopyState, GivenUp, QemuError, Run, Usage};

/// How long libvirt may take to say what it would tell QEMU: it looks at QEMU anew if
/// that has changed, which on a busy host is a minute.
const LOOK_ANEW: Duration = Duration::from_secs(120);

/// A VM that libvirt owns.
#[derive(Clone, Debug)]
pub struct Managed {
    virsh: Virsh,
    domain: String,
}

impl Managed {
    /// Finds it.
    pub(crate) async fn find(uri: &str, domain: &str) -> Result<Managed, VirshError> {
        let managed = Managed { virsh: Virsh::at(uri), domain: domain.into() };
        managed.run().await?;
        Ok(managed)
    }

    pub(crate) async fn run(&self) -> Result<Run, VirshError> {
        let word = self.virsh.run(&["domstate", &self.domain]).await?.trim().to_owned();
        let on = !matches!(word.as_str(), "shut off" | "crashed" | "no state");
        Ok(Run { on, running: matches!(word.as_str(), "running" | "idle"), word })
    }

    pub(crate) async fn usage(&self) -> Result<Option<Usage>, VirshError> {
        Ok(of_domain(&self.stats_of_memory().await?))
    }

    /// What libvirt counts of its processors and its memory, as it prints that.
    pub(crate) async fn stats_of_memory(&self) -> Result<String, VirshError> {
        let which = ["domstats", "--cpu-total", "--vcpu", "--balloon", &self.domain];
        self.virsh.run(&which).await
    }

    /// How much memory it has, whatever its balloon has of it, in bytes.
    pub(crate) async fn memory_size(&self) -> Result<Option<u64>, VirshError> {
        let most = number_of_domain(&self.stats_of_memory().await?, "balloon.maximum");
        Ok(most.map(|kib| kib.saturating_mul(1024)))
    }

    /// Its process, if it is on this host.
    pub(crate) async fn process(&self) -> Result<Option<Process>, VirshError> {
        let uuid = self.virsh.run(&["domuuid", &self.domain]).await?;
        Ok(Process::of_domain(uuid.trim()))
    }

    /// Has its guest say every so many seconds what it has of memory.
    pub(crate) async fn have_guest_say(&self, every: u64) -> Result<(), VirshError> {
        let every = every.to_string();
        let words = ["dommemstat", &self.domain, "--period", &every, "--live"];
        self.virsh.run(&words).await.map(drop)
    }

    /// Leaves its guest so much memory, until it is started again.
    pub(crate) async fn set_memory_kib(&self, kib: u64) -> Result<(), VirshError> {
        let size = kib.to_string();
        self.virsh.run(&["setmem", &self.domain, &size, "--live"]).await.map(drop)
    }

    pub(crate) async fn drives(&self) -> Result<Vec<Drive>, VirshError> {
        let domain = self.virsh.domain(&self.domain).await?;
        let figures = self.virsh.figures(&self.domain).await?;
        let kept_inside = self.lists("snapshot-list", &["--internal", "--name"]).await?;
        let bitmaps = self.lists("checkpoint-list", &["--name"]).await?;
        let drive = |disk: DomainDisk| {
            let image = disk.source.clone()?;
            let figures = figures.iter().find(|one| one.target == disk.target);
            let unmovable = if !disk.is_file {
                Some(Unmovable::Format)
            } else if disk.format == "qcow2" && kept_inside {
                Some(Unmovable::Snapshots)
            } else if bitmaps {
                Some(Unmovable::Bitmaps)
            } else {
                unmovable(&disk)
            };
            Some(Drive {
                device: disk.target,
                image,
                format: disk.format,
                size: figures.map_or(0, |one| one.size),
                allocated: figures.and_then(|one| one.allocated),
                read_only: disk.read_only,
                unmovable,
                node: None,
            })
        };
        Ok(domain.disks.into_iter().filter_map(drive).collect())
    }

    /// Those that it has now, and those that it is to start with.
    pub(crate) async fn files(&self) -> Result<Vec<String>, VirshError> {
        let mut files = self.virsh.domain(&self.domain).await?.files;
        files.extend(self.virsh.kept(&self.domain).await?.files);
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Whether QEMU would look again for an NBD server that was away: older versions of
    /// libvirt pass over what says so. It is asked what QEMU would be told, which
    /// starts nothing.
    pub(crate) async fn reconnects(&self) -> Result<bool, VirshError> {
        let args = ["domxml-to-native", "qemu-argv", "--xml", "/dev/stdin"];
        let told = self.virsh.run_with(&args, probe(), LOOK_ANEW).await?;
        Ok(told.contains("reconnect-delay"))
    }

    /// Whether a list of the VM's has anything in it.
    async fn lists(&self, list: &str, which: &[&str]) -> Result<bool, VirshError> {
        let whole = [&[list, &self.domain][..], which].concat();
        let listed = self.virsh.run(&whole).await?;
        Ok(listed.lines().any(|line| !line.trim().is_empty()))
    }

    pub(crate) async fn stats(&self) -> Result<Vec<(String, Stats)>, VirshError> {
        let figures = self.virsh.figures(&self.domain).await?;
        Ok(figures.into_iter().map(|one| (one.target, one.stats)).collect())
    }

    pub(crate) async fn begin(
        &self,
        copy: &Copy,
        _drive: &Drive,
        speed: u64,
    ) -> Result<(), VirshError> {
        let (domain, speed) = (self.domain.as_str(), speed.to_string());
        let (to, xml) = match &copy.to {
            Place::File { path, format } => {
                (&["--dest", path, "--format", format][..], String::new())
            }
            // What is there is not to be made.
            Place::Export(export) => {
                let xml = nbd_disk(export, &copy.device);
                (&["--xml", "/dev/stdin", "--reuse-external"][..], xml)
            }
        };
        let args = [&["blockcopy", domain, &copy.device][..], to].concat();
        // A VM that is to stay may be copied only by who sees to the copy's end.
        let more = ["--transient-job", "--bytes", "--bandwidth", &speed];
        let size = GENTLE.to_string();
        let gentle = if copy.gentle { &["--buf-size", &size][..] } else { &[] };
        let whole = [&args[..], &more[..], gentle].concat();
        self.virsh.run_with(&whole, xml, ANSWER_WITHIN).await.map(drop)
    }

    pub(crate) async fn look(&self, copy: &Copy) -> Result<CopyState, QemuError> {
        // Whose job it is, the figures do not say: the mirror's place does.
        let domain = self.virsh.domain(&self.domain).await?;
        let Some(disk) = domain.disk(&copy.device) else {
            return Ok(CopyState::Unknown);
        };
        let to = copy.to.image();
        let to = Some(to.as_str());
        Ok(match &disk.mirror {
            Some(mirror) if mirror.place.as_deref() != to => CopyState::Unknown,
            Some(mirror) if mirror.ends => CopyState::Switching,
            Some(mirror) => {
                let job = self.virsh.job(&self.domain, &copy.device).await?;
                let (done, total) = job.map_or((0, 0), |job| (job.done, job.total));
                match mirror.ready {
                    true => CopyState::Ready { done },
                    false => CopyState::Copying { done, total },
                }
            }
            None if disk.source.as_deref() == to => CopyState::Ended(None),
            None => CopyState::Unknown,
        })
    }

    pub(crate) async fn set_speed(
        &self,
        copy: &Copy,
        speed: u64,
    ) -> Result<(), VirshError> {
        let speed = speed.to_string();
        let args = ["--bytes", "--bandwidth", &speed];
        self.job(copy, &args).await
    }

    pub(crate) async fn complete(&self, copy: &Copy) -> Result<(), VirshError> {
        self.job(copy, &["--pivot", "--async"]).await
    }

    pub(crate) async fn call_off(&self, copy: &Copy) -> Result<(), VirshError> {
        self.job(copy, &["--abort"]).await
    }

    pub(crate) async fn give_up(
        &self,
        copy: &Copy,
        served: bool,
    ) -> Result<GivenUp, QemuError> {
        // What it was told before, and has not answered in time, it may be at still: a copy
        // that begins is not in the XML yet. One thing comes after the other, figures too.
        self.virsh.figures(&self.domain).await?;
        match self.look(copy).await? {
            CopyState::Unknown | CopyState::Ended(_) => Ok(GivenUp::Nothing),
            _ if !served => Err(QemuError::Unserved { what: copy.device.clone() }),
            // How it ends libvirt does not say: where the disk is has to be asked for.
            _ => Ok(self.call_off(copy).await.map(|()| GivenUp::Something)?),
        }
    }

    pub(crate) async fn put_away(&self, copy: &Copy) -> Result<(), VirshError> {
        let kept = self.virsh.kept(&self.domain).await?;
        let source = kept.disk(&copy.device).and_then(|disk| disk.source.clone());
        let to = copy.to.image();
        // A VM that is not to stay has no kept XML but its own.
        if source.as_deref() != Some(to.as_str()) {
            let source = source.unwrap_or_else(|| "nothing".into());
            return Err(VirshError::NotUnderstood {
                command: format!("dumpxml --inactive {}", self.domain),
                reason: format!("the next start would use {source}, and not {to}"),
            });
        }
        Ok(())
    }

    async fn job(&self, copy: &Copy, args: &[&str]) -> Result<(), VirshError> {
        let whole = [&["blockjob", &self.domain, &copy.device][..], args].concat();
        self.virsh.run(&whole).await.map(drop)
    }
}

fn unmovable(disk: &DomainDisk) -> Option<Unmovable> {
    if disk.read_only {
        Some(Unmovable::ReadOnly)
    } else if !is_known(&disk.format) {
        Some(Unmovable::Format)
    } else if disk.encrypted {
        Some(Unmovable::Encrypted)
    } else {
        None
    }
}
