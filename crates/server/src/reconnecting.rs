//! Clients that will not come back after a restart of the daemon.
//!
//! QEMU reconnects only if it was told to. libvirt 9.0 and older leave that out without a
//! word, and then a restart of the daemon is an I/O error in the guest. QEMU's command line
//! says whether it was told. Nothing is known of a client on another machine, of one that
//! was added over QMP, and of processes that this user may not see.

use std::time::Duration;

use sterna_api::Warning;
use sterna_os::processes;
use sterna_qemu::command_line::{Client, clients};
use sterna_state::DiskRecord;
use sterna_storage::asker::Asker;
use sterna_storage::places::NbdPlace;

use super::Server;

/// How long the kernel may take. People wait for the status.
const ASKING: Duration = Duration::from_millis(500);

/// What QEMU's program is called; the second on Proxmox VE.
const QEMU: [&str; 2] = ["qemu", "kvm"];

impl Server {
    /// A warning for each QEMU with a disk that it will not connect to again.
    pub(super) fn will_not_reconnect(&self, disks: &[DiskRecord]) -> Vec<Warning> {
        // The kernel does not say how a process was started that hangs in the kernel itself.
        let running = Asker::default().ask(ASKING, || processes::started(&QEMU)).answer();
        let running = running.unwrap_or_default().into_iter();
        let given_up = running.flat_map(|(pid, arguments)| {
            clients(&arguments).into_iter().map(move |client| (pid, client))
        });
        let given_up = given_up.filter(|(_, client)| !client.reconnects);
        given_up
            .filter_map(|(pid, it)| Some(warning(self.disk_of(&it, disks)?, pid)))
            .collect()
    }

    fn disk_of<'d>(
        &self,
        client: &Client,
        disks: &'d [DiskRecord],
    ) -> Option<&'d DiskRecord> {
        let is_ours = |place: &NbdPlace| match place {
            NbdPlace::Unix(path) => path.as_os_str() == client.socket.as_str(),
            NbdPlace::Tcp(_) => false,
        };
        disks.iter().find(|disk| match &client.export {
            Some(export) => {
                let named = *export == disk.name || *export == disk.id.to_string();
                named && self.storage.places.nbd.iter().any(is_ours)
            }
            None => disk.vhost_user.as_ref() == Some(&client.socket),
        })
    }
}

fn warning(disk: &DiskRecord, pid: u32) -> Warning {
    let name = &disk.name;
    Warning {
        about: format!("disk {name}"),
        message: format!(
            "QEMU (process {pid}) does not reconnect: if the daemon restarts, the guest \
             gets I/O errors"
        ),
        hint: format!(
            "stop the VM before you restart the daemon; start it with the options of \
             `sterna disk qemu-args {name}`, or with a libvirt newer than 9.0"
        ),
    }
}
