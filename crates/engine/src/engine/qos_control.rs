//! QoS control: the calls by which the daemon sets service levels.
//!
//! Whatever is changed here is in force when the call returns: requests that wait have
//! been looked at again by then.

use sterna_core::qos::{ClassId, Terms};
use sterna_core::{DiskId, Nanos};

use super::{Engine, EngineError};
use crate::image::Budget;
use crate::qos::Membership;

impl Engine {
    /// Puts a class's terms in force, for all its disks at once; without terms the
    /// class is gone.
    pub fn set_terms(
        &self,
        class: ClassId,
        terms: Option<Terms>,
    ) -> Result<(), EngineError> {
        let now = Nanos::from(self.0.shared.epoch.elapsed());
        self.0.shared.classes.set(now, class, terms);
        self.look_again()
    }

    /// Puts a disk's guest into a class, or into none. What waits goes with it.
    pub fn set_class(
        &self,
        disk: DiskId,
        class: Option<ClassId>,
    ) -> Result<(), EngineError> {
        let membership = match class {
            Some(id) => Membership::of(id, self.0.shared.classes.get(id)),
            None => Membership::default(),
        };
        self.on_disk(disk, |disk, cx| disk.core.set_class(cx, membership))
    }

    /// Lets so many requests be at a datastore at once, or any number.
    pub fn set_window(
        &self,
        datastore: &Budget,
        window: Option<u32>,
    ) -> Result<(), EngineError> {
        datastore.pool().set_window(window);
        self.look_again()
    }

    fn look_again(&self) -> Result<(), EngineError> {
        self.call_all(|reactor| reactor.cx.qos.terms_changed(reactor.cx.now)).map(drop)
    }
}
