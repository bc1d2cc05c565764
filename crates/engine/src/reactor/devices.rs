//! Machines' disks on a reactor: what their servers ask for, and their share of an iteration.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::{LINGER, Reactor};
use crate::disk::Client;
use crate::export::vhost::Devices;
use crate::export::vhost::device::Device;
use crate::image::Cx;

impl Devices for Reactor {
    const LINGER: Duration = LINGER;

    /// There is none if the disk is gone or is to go, or while one that is to end has
    /// requests under way. A server that ends does not wait for those for ever, and the
    /// machine repeats them: the first ones must not land last.
    fn add_device(&mut self, disk: u32, name: &str) -> io::Result<u32> {
        let ends = |device: &Device| device.disk == disk && device.is_closing();
        if self.devices.iter().any(|(_, device)| ends(device)) {
            let why = "requests of the previous virtual machine are still under way";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        let home = self.disks.get_mut(disk).filter(|disk| !disk.core.closing);
        let home = home.ok_or(io::ErrorKind::NotFound)?;
        let key = self.devices.next_key();
        let inserted = self.devices.insert(Device::new(key, disk, name)?);
        debug_assert_eq!(inserted, key);
        home.core.has_come(self.cx.now, Client::Device(key));
        Ok(key)
    }

    fn device(&mut self, key: u32) -> Option<(&mut Device, &mut Cx)> {
        let device = self.devices.get_mut(key)?;
        stir(device, &mut self.stirred, key);
        Some((device, &mut self.cx))
    }

    fn remove_device(&mut self, key: u32, done: Sender<()>) {
        if let Some((device, cx)) = self.device(key) {
            device.close(cx, done);
        }
    }
}

impl Reactor {
    pub(super) fn kicked(&mut self, key: u32, tag: u32) {
        if let Some((device, _)) = self.device(key) {
            device.kicked(tag);
        }
    }

    pub(super) fn wake_device(&mut self, key: u32) {
        if let Some((device, _)) = self.device(key) {
            device.woken();
        }
    }

    pub(super) fn work_device(&mut self, key: u32) {
        let Some(device) = self.devices.get_mut(key) else { return };
        device.listed = false;
        let disk = device.disk;
        let Some(home) = self.disks.get_mut(disk) else { return };
        let left = device.has_left();
        if left {
            home.abandon(&mut self.cx, Client::Device(key));
        }
        let stopping = device.is_stopping();
        if !stopping {
            home.core.hurries_no_more(Client::Device(key));
        }
        device.work(&mut self.cx, home);
        if stopping {
            home.hasten(&mut self.cx, Client::Device(key));
        }
        self.drained.push(key);
        // A driver may have answered at once.
        self.deliver_disk(disk);
        if left || stopping {
            self.serve_behind_disk(disk);
        }
    }

    pub(super) fn flush_device(&mut self, key: u32) {
        let Some(device) = self.devices.get_mut(key) else { return };
        device.flush(&mut self.cx);
        if device.is_gone() {
            let disk = device.disk;
            self.devices.remove(key);
            if let Some(disk) = self.disks.get_mut(disk) {
                disk.core.has_gone(self.cx.now, Client::Device(key));
            }
        }
    }
}

/// Lists a device for this iteration.
pub(super) fn stir(device: &mut Device, stirred: &mut VecDeque<u32>, key: u32) {
    if !std::mem::replace(&mut device.listed, true) {
        stirred.push_back(key);
    }
}
