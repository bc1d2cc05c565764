//! Who is asked about an export of which nothing is known.
//!
//! An export that was just begun to be used has no witness yet: nothing that was read there is
//! known to be durable. If all connections are lost then, whatever answers at the address next
//! cannot be told from another disk's place. But whoever knows the other disks can compare: so
//! the *voucher* is asked, on the helper that connects, before such a connection carries
//! anything. Without one, as in tests of the engine, all is well.

use std::sync::{Arc, OnceLock};

use sterna_nbd::Uri;

/// What is known of an export after a look at all other disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// It is none of their places, as far as can be told.
    Fine,
    /// It is another disk's, for this reason.
    Another(String),
    /// That cannot be told now, for this reason.
    Unclear(String),
}

/// Answers for an export. Blocks, for seconds if need be.
pub type VouchFor = Box<dyn Fn(&Uri) -> Vouched + Send + Sync>;

/// The one that is asked, once there is one.
#[derive(Clone, Default)]
pub(crate) struct Voucher(Arc<OnceLock<VouchFor>>);

impl Voucher {
    /// Asks this one from now on. The first one stays.
    pub(crate) fn appoint(&self, voucher: VouchFor) {
        let _ = self.0.set(voucher);
    }

    /// What is known of an export.
    pub(crate) fn ask(&self, uri: &Uri) -> Vouched {
        self.0.get().map_or(Vouched::Fine, |voucher| voucher(uri))
    }
}
