//! The route of a disk's requests, and what a migration's driver does for it.

use super::Core;
use crate::image::{Cx, ImageResult};

/// Where requests go.
pub(crate) enum Route {
    /// To the current image.
    Direct,
    /// To the driver of a migration.
    Mirrored(Box<dyn Driver>),
}

/// How a disk migrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Migrates {
    /// It does.
    Now,
    /// It does not any more, and the source has not answered all that was asked for.
    AwaitsSource,
}

/// What a migration's driver is told. It is never called from within itself:
/// whatever it starts is reported in a later call.
pub(crate) trait Driver {
    /// A guest request has come; it is in the table under this number.
    fn arrived(&mut self, core: &mut Core, cx: &mut Cx, request: u32);

    /// Whether the guest waits for admission may have changed.
    fn look_who_waits(&mut self, core: &mut Core, cx: &mut Cx);

    /// An image has answered the ticket with this id, or has news
    /// ([`Ticket::NEWS`]).
    fn finished(&mut self, core: &mut Core, cx: &mut Cx, id: u64, result: ImageResult);

    /// An operation of the copier that waited for admission has started.
    fn copy_started(&mut self, core: &mut Core, cx: &mut Cx, id: u64);

    /// A timer with `Owner::Disk(core.index)` has fired.
    fn timer(&mut self, core: &mut Core, cx: &mut Cx, tag: u32);

    /// Called after each of the above, and after any call from outside: whether
    /// the driver is still needed. If not, the route is direct from now on.
    fn active(&self) -> bool;

    /// Whether the migration is over, and the driver is needed only until the source has
    /// answered.
    fn awaits_source(&self) -> bool;

    /// For `Disk::driver_mut::<T>()`.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}
