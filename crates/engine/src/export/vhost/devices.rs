//! What holds devices: the reactor of their disks, as far as `control` has to know it.
//!
//! A reactor knows its devices, and they do not know it: whoever speaks for a hypervisor
//! asks it through its mailbox.

use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::device::Device;
use crate::image::Cx;

/// Disks, and the devices by which machines use them.
pub(crate) trait Devices: 'static {
    /// How long operations are waited for that are under way when the server of a device
    /// ends.
    const LINGER: Duration;

    /// A device for a disk, which the guest knows by this name; gives the device's number.
    fn add_device(&mut self, disk: u32, name: &str) -> io::Result<u32>;

    /// A device, and what its methods need. Whatever they change is worked on at once.
    fn device(&mut self, key: u32) -> Option<(&mut Device, &mut Cx)>;

    /// Ends a device; `done` hears of it when it is gone.
    fn remove_device(&mut self, key: u32, done: Sender<()>);
}
