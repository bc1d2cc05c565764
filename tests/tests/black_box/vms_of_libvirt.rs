//! VMs that libvirt owns: Sterna has libvirt move their disks, and serves disks
//! that libvirt's VMs use.

use std::path::PathBuf;

use sterna_tests::libvirt::{self, Domain};
use sterna_tests::vms::{is_written, number_on, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

use crate::attaching::{prepared, says_90};
use crate::vms::{
    REPORTED, disk, holds_webs_disk, image, moving, nothing_is_left, slow_move,
};

/// A stage with a busy VM `web` that libvirt owns.
pub(crate) fn libvirt_stage() -> Option<(Stage, Domain, PathBuf)> {
    if !libvirt::have() {
        return None;
    }
    let stage = Stage::new();
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let domain = Domain::start(&stage.scratch, &image, "raw");
    let line = format!("vm add web --libvirt {} {}", libvirt::URI, domain.name());
    stage.daemon.sterna(&line).ok();
    until("the guest to write", seconds(60), || (number_on(&image) > 0).then_some(()));
    Some((stage, domain, image))
}

#[test]
fn a_disk_of_libvirts_moves_and_is_there_at_the_next_start() {
    let Some((stage, domain, old)) = libvirt_stage() else { return };
    let shown = disk(&stage);
    assert_eq!((&shown["format"], &shown["size"]), (&"raw".into(), &(64 * MIB).into()));
    assert!(shown["now"]["iops"].as_f64() > Some(0.0), "{shown:#}");
    let answer = stage.daemon.sterna("vm move web vda --to there --rate 40M").ok();
    // Lines end where a terminal does.
    let said = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("libvirt's XML of"), "{}", answer.stdout);
    let new = image(&stage);
    assert_eq!(new.parent(), Some(stage.there.as_path()));
    is_written(&new);
    assert!(number_on(&new) > number_on(&old), "the old image is left as it was");
    assert!(domain.kept().contains(&new.display().to_string()), "{}", domain.kept());
    domain.destroy();
    assert_eq!(stage.daemon.json("vm show web")["state"], "off");
    domain.start_again();
    assert_eq!(image(&stage), new);
    is_written(&new);
}

#[test]
fn a_datastore_with_a_disk_of_libvirts_is_not_empty() {
    let Some((mut stage, domain, _)) = libvirt_stage() else { return };
    holds_webs_disk(&stage);
    // Another daemon looks by itself.
    stage.daemon.stop();
    stage.daemon.restart();
    until("the daemon to look at libvirt's VMs", seconds(30), || {
        let shown = stage.daemon.json("datastore show here");
        (shown["vm_disks"][0] == "web/vda").then_some(())
    });
    domain.destroy();
    holds_webs_disk(&stage);
}

#[test]
fn a_wrong_name_and_a_wrong_uri_of_libvirt_have_hints_of_their_own() {
    let Some((stage, domain, _)) = libvirt_stage() else { return };
    let line = format!("vm add wbe --libvirt {}", libvirt::URI);
    // While others define and remove VMs there, libvirt may not say at once which ones it has.
    let answer = until("libvirt to say which VMs it has", seconds(30), || {
        let answer = stage.daemon.sterna(&line);
        (!answer.stderr.contains("it does not say")).then_some(answer)
    });
    answer.fails_with(&["libvirt has no VM wbe; it has: ", domain.name(), "DOMAIN"]);
    let uri = stage.daemon.sterna("vm add other --libvirt qemu:///sytem");
    let uri = uri.fails_with(&["correct the URI", "qemu:///system"]);
    assert!(!uri.stderr.contains("DOMAIN"), "{}", uri.stderr);
}

#[test]
fn a_move_of_libvirts_is_guarded_and_cancelled() {
    let Some((stage, domain, old)) = libvirt_stage() else { return };
    stage.daemon.sterna("vm move web vda --to there --p99 5ms").fails_with(&["--keep"]);
    let id = moving(&stage, "web vda --to there --keep 97% --rate 1M");
    until("the guard to be at work", seconds(20), || {
        let guard = stage.daemon.migration(id)["guard"]["state"].clone();
        guard.is_string().then_some(())
    });
    stage.daemon.cancel(id);
    assert_eq!(image(&stage), old);
    nothing_is_left(&stage);
    assert!(domain.kept().contains(&old.display().to_string()));
    is_written(&old);
}

#[test]
fn a_vm_of_libvirts_that_goes_off_ends_its_move() {
    let Some((stage, domain, old)) = libvirt_stage() else { return };
    let id = slow_move(&stage);
    domain.destroy();
    let ended = stage.daemon.wait_for(id, "cancelled", REPORTED);
    assert!(ended["reason"].is_string(), "{ended:#}");
    nothing_is_left(&stage);
    assert!(domain.kept().contains(&old.display().to_string()));
}

#[test]
fn a_copy_that_libvirt_begins_after_we_have_given_up_on_it_is_given_up_too() {
    let Some((mut stage, domain, old)) = libvirt_stage() else { return };
    // QEMU hangs, and libvirt with whoever asks for its figures: the copy has to wait.
    let real = programs::find("virsh").expect("it is there");
    let hangs = format!(
        "#!/bin/sh\ncase \"$*\" in *blockcopy*)\n kill -STOP $(cat {})\n {} -c {} \
         domstats --block {} >/dev/null 2>&1 &\n sleep 1;;\nesac\nexec {} \"$@\"\n",
        domain.pid_file().display(),
        real.display(),
        libvirt::URI,
        domain.name(),
        real.display()
    );
    stage.daemon.stop();
    stage.daemon.use_instead(&stage.scratch, "virsh", &hangs);
    stage.daemon.restart();
    let id = moving(&stage, "web vda --to there --rate 1M");
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(20));
    assert!(ended["reason"].to_string().contains("blockcopy"), "{ended:#}");
    domain.go_on();
    until("libvirt to begin the copy, and us to see it", seconds(30), || {
        stage.daemon.log().contains("has nothing of the copy any more").then_some(())
    });
    assert!(!domain.job().contains("Block Copy"), "{}", domain.job());
    nothing_is_left(&stage);
    assert_eq!(image(&stage), old);
}

#[test]
fn a_copy_that_somebody_else_has_libvirt_make_is_left_alone() {
    let Some((stage, domain, old)) = libvirt_stage() else { return };
    domain.begin_copy(&stage.scratch.path("backup.raw"));
    stage.daemon.sterna("vm move web vda --to there").fails_with(&["was cancelled"]);
    assert!(domain.job().contains("Block Copy"), "{}", domain.job());
    assert_eq!(image(&stage), old);
    nothing_is_left(&stage);
}

#[test]
fn a_vm_of_libvirts_uses_a_disk_over_vhost_user_across_a_restart_and_a_move() {
    if !libvirt::have() {
        return;
    }
    let Some(mut stage) = Stage::given(&["qemu-io"]) else { return };
    let socket = prepared(&stage);
    stage.daemon.sterna(&format!("disk attach a --vhost-user {}", socket.display())).ok();
    let domain = Domain::start_over_vhost_user(&stage.scratch, &socket);
    let uri = stage.daemon.uri("a");
    let guest_writes = |when: &str| {
        until(when, seconds(60), || says_90(&uri, 1024).then_some(()));
    };
    guest_writes("the guest to boot from its disk and write to it");
    let forget = ["-f", "raw", "-c", "write -P 0 1024 512", &uri];
    for when in ["after a restart", "after a move"] {
        if when == "after a move" {
            let id = stage.daemon.migrate("a --to there");
            stage.daemon.completed(id);
        } else {
            stage.daemon.kill();
            stage.daemon.restart();
        }
        programs::run("qemu-io", forget);
        domain.reset();
        guest_writes(when);
    }
    let status = stage.daemon.sterna("status").ok().stdout;
    assert!(!status.contains("reconnect"), "libvirt's QEMU reconnects: {status}");
}

#[test]
fn where_libvirt_does_not_run_it_is_said_what_to_install_or_to_start() {
    let mut stage = Stage::new();
    let says = "error: failed to connect to the hypervisor
error: Failed to connect socket to '/run/libvirt/libvirt-sock': No such file or directory";
    let script = format!("#!/bin/sh\necho \"{says}\" >&2\nexit 1\n");
    stage.daemon.stop();
    stage.daemon.use_instead(&stage.scratch, "virsh", &script);
    stage.daemon.restart();
    let refused = stage.daemon.sterna("vm add web --libvirt qemu:///system");
    refused.fails_with(&[
        "Failed to connect socket",
        "Sterna added nothing",
        "systemctl start libvirtd",
        "libvirt-daemon-system",
    ]);
    assert_eq!(stage.daemon.json("vm list").as_array().map(Vec::len), Some(0));
}
