//! The classes that the engine knows, with their terms in force. Looked up when a
//! disk changes its class and when terms change, never for a request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use sterna_core::Nanos;
use sterna_core::qos::{Class, ClassId, Terms};

#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// All copies of migrations.
    migration: Arc<Class>,
    others: Mutex<BTreeMap<ClassId, Arc<Class>>>,
}

impl Classes {
    fn others(&self) -> MutexGuard<'_, BTreeMap<ClassId, Arc<Class>>> {
        self.others.lock().expect("nothing panics with the classes locked")
    }

    /// The class of all copies.
    pub(crate) fn migration(&self) -> Arc<Class> {
        Arc::clone(&self.migration)
    }

    /// A class; one that nobody has spoken of yet has the terms that all begin with.
    pub(crate) fn get(&self, id: ClassId) -> Arc<Class> {
        match id {
            ClassId::MIGRATION => self.migration(),
            _ => Arc::clone(self.others().entry(id).or_default()),
        }
    }

    /// Changes a class's terms. Without terms, those that are still in it have none.
    pub(crate) fn set(&self, now: Nanos, id: ClassId, terms: Option<Terms>) {
        self.get(id).set_terms(now, &terms.unwrap_or_default());
        if terms.is_none() {
            self.others().remove(&id);
        }
    }
}
