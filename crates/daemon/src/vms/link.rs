//! The connection to a machine, shared by all who need it at a time.
//!
//! A QMP monitor takes one connection at a time, so a look at a machine must not open a
//! second one while a disk of it moves. The connection is closed as soon as nobody needs
//! it: another program may want the monitor. Connections go by how a machine is reached,
//! not by its name: a machine that goes to another QEMU is reached otherwise from then on,
//! and who moves it there has the connection already.

use std::sync::{Arc, Weak};

use sterna_qemu::{Machine, QemuError};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{Reach, Vms};
use crate::daemon::lock;
use crate::store::VmRecord;

/// The connection to one machine.
#[derive(Debug)]
pub(crate) struct Link {
    reach: Reach,
    /// Held while it is opened, so that it is opened once.
    open: Mutex<Weak<Machine>>,
}

impl Link {
    /// The connection; opened, if it is not.
    pub(crate) async fn machine(&self) -> Result<Arc<Machine>, QemuError> {
        let mut open = self.open.lock().await;
        if let Some(machine) = open.upgrade().filter(|machine| !machine.is_over()) {
            return Ok(machine);
        }
        let machine = Arc::new(Machine::reach(&(&self.reach).into()).await?);
        *open = Arc::downgrade(&machine);
        Ok(machine)
    }
}

impl Vms {
    /// The connection to a machine that is reached so.
    pub(crate) fn link(&self, reach: &Reach) -> Arc<Link> {
        let mut links = lock(&self.links);
        let new = || Arc::new(Link { reach: reach.clone(), open: Mutex::default() });
        links.entry(reach.to_string()).or_insert_with(new).clone()
    }

    /// What comes of asking each of these machines, in their order. All are asked at once:
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

    /// Nobody will ask for a machine there any more.
    pub(crate) fn unlink(&self, reach: &Reach) {
        lock(&self.links).remove(&reach.to_string());
    }
}
