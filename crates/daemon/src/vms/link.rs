//! The connection to a machine, shared by all who need it at a time.
//!
//! A QMP monitor takes one connection at a time, so a look at a machine must not open a
//! second one while a disk of it moves. The connection is closed as soon as nobody needs
//! it: another program may want the monitor.

use std::sync::{Arc, Weak};

use sterna_qemu::{Machine, QemuError};
use tokio::sync::Mutex;

use super::{Reach, Vms};
use crate::daemon::lock;

/// The connection to one machine.
#[derive(Debug)]
pub(super) struct Link {
    reach: Reach,
    /// Held while it is opened, so that it is opened once.
    open: Mutex<Weak<Machine>>,
}

impl Link {
    /// The connection; opened, if it is not.
    pub(super) async fn machine(&self) -> Result<Arc<Machine>, QemuError> {
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
    pub(super) fn link(&self, name: &str, reach: &Reach) -> Arc<Link> {
        let mut links = lock(&self.links);
        let known = links.get(name).filter(|link| link.reach == *reach).cloned();
        known.unwrap_or_else(|| {
            let link = Link { reach: reach.clone(), open: Mutex::default() };
            let link = Arc::new(link);
            links.insert(name.to_owned(), link.clone());
            link
        })
    }

    /// Nobody will ask for this machine any more.
    pub(super) fn unlink(&self, name: &str) {
        lock(&self.links).remove(name);
    }
}
