//! The connection to a VM, shared by all who need it at a time.
//!
//! A QMP monitor takes one connection at a time, so a look at a VM must not open a second
//! one while a disk of it moves. The connection is closed as soon as nobody needs it:
//! another program may want the monitor. Connections go by how a VM is reached, not by
//! its name: a VM that goes to another QEMU is reached otherwise from then on, and who
//! moves it there has the connection already.
//!
//! A link is there as long as somebody holds it, and knows who has listened for its VM as
//! long: nobody found at a socket is no QEMU that has ended while that one listens.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use sterna_os::lock;
use sterna_qemu::qmp::ANSWER_WITHIN;
use sterna_qemu::{Process, QemuError, VmHandle};
use sterna_state::{Reach, VmRecord};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::KnownVms;

/// So many of libvirt's VMs are asked at a time, if many are: libvirt has 20 workers by default,
/// and moves ask it as well.
pub(crate) const OF_LIBVIRT_AT_ONCE: usize = 8;

/// So many links of which nobody knows whether they are held take no room worth the look.
const FEW: usize = 16;

/// The connection to one VM.
#[derive(Debug)]
pub(crate) struct Link {
    reach: Reach,
    /// Held while it is opened, so that it is opened once.
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    vm: Weak<VmHandle>,
    /// Who has listened for the last one.
    listener: Option<Process>,
}

impl Link {
    /// How the VM is reached.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The connection; opened, if it is not.
    pub(crate) async fn vm(&self) -> Result<Arc<VmHandle>, QemuError> {
        let mut open = self.open.lock().await;
        let known = open.vm.upgrade();
        if let Some(vm) = known.filter(|vm| !vm.is_over()) {
            return Ok(vm);
        }
        let how = how(&self.reach);
        let vm = Arc::new(VmHandle::reach_again(&how, open.listener).await?);
        *open = Open { vm: Arc::downgrade(&vm), listener: vm.listener() };
        Ok(vm)
    }
}

/// How a VM is reached, in the words of the client.
fn how(reach: &Reach) -> sterna_qemu::Reach {
    match reach.clone() {
        Reach::Qmp(socket) => sterna_qemu::Reach::Qmp(socket),
        Reach::Libvirt { uri, domain } => sterna_qemu::Reach::Libvirt { uri, domain },
    }
}

/// Those that somebody holds, by how their VMs are reached; and some of which nobody has
/// looked yet whether that is still so.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: BTreeMap<String, Weak<Link>>,
    /// With so many it is looked at.
    full: usize,
}

impl Links {
    fn get(&mut self, reach: &Reach) -> Arc<Link> {
        let name = reach.to_string();
        if let Some(link) = self.all.get(&name).and_then(Weak::upgrade) {
            return link;
        }
        // Seldom enough for a look at all to cost next to nothing.
        if self.all.len() >= self.full {
            self.all.retain(|_, link| link.strong_count() > 0);
            self.full = 2 * self.all.len() + FEW;
        }
        let link = Arc::new(Link { reach: reach.clone(), open: Mutex::default() });
        self.all.insert(name, Arc::downgrade(&link));
        link
    }
}

impl KnownVms {
    /// The connection to a VM that is reached so.
    pub(crate) fn link(&self, reach: &Reach) -> Arc<Link> {
        lock(&self.links).get(reach)
    }

    /// What comes of asking each of these VMs, in their order. All are asked at once:
    /// several that hang take no longer than one. One whose asking was broken off, as the
    /// daemon ends, is missing.
    pub(super) fn ask_all<A, T>(
        &self,
        records: &[VmRecord],
        ask: impl Fn(Arc<Link>) -> A,
    ) -> Vec<(VmRecord, T)>
    where
        A: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let mut asked = JoinSet::new();
        for (number, record) in records.iter().enumerate() {
            let answer = ask(self.link(&record.reach));
            let answer = async move { (number, answer.await) };
            asked.spawn_on(answer, &self.runtime);
        }
        let mut answers: Vec<(usize, T)> = self.runtime.block_on(async {
            let mut answers = Vec::new();
            while let Some(answer) = asked.join_next().await {
                answers.extend(answer.ok());
            }
            answers
        });
        answers.sort_by_key(|(number, _)| *number);
        let with_record =
            |(number, answer): (usize, T)| (records[number].clone(), answer);
        answers.into_iter().map(with_record).collect()
    }

    /// The same, but of libvirt's VMs so many at a time: each question is a process. None waits
    /// longer for its turn than for an answer.
    pub(super) fn ask_all_in_turn<A, T>(
        &self,
        records: &[VmRecord],
        ask: impl Fn(Arc<Link>) -> A,
    ) -> Vec<(VmRecord, T)>
    where
        A: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        self.ask_all(records, |link| {
            let takes_turn = matches!(link.reach(), Reach::Libvirt { .. });
            let (turns, asked) = (self.of_libvirt.clone(), ask(link));
            async move {
                let turn = turns.acquire_owned();
                let turn = async { timeout(ANSWER_WITHIN, turn).await.ok() };
                let _turn = if takes_turn { turn.await } else { None };
                asked.await
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: usize) -> Reach {
        Reach::Qmp(format!("/run/web-{number:x}.qmp").into())
    }

    #[test]
    fn who_asks_for_a_vm_at_the_same_time_has_the_same_link() {
        let mut links = Links::default();
        let one = links.get(&at(1));
        assert!(Arc::ptr_eq(&one, &links.get(&at(1))));
        assert!(!Arc::ptr_eq(&one, &links.get(&at(2))));
    }

    #[test]
    fn vms_that_come_and_go_leave_no_links_behind() {
        let mut links = Links::default();
        let held = links.get(&at(0));
        for number in 1..10_000 {
            // A VM that is on its way has two.
            let _both = (links.get(&at(number)), links.get(&at(number + 1)));
        }
        assert!(links.all.len() < 4 * FEW, "{} are left", links.all.len());
        assert!(Arc::ptr_eq(&held, &links.get(&at(0))), "who holds one has it");
    }
}
