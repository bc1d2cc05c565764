//! Disks of VMs that libvirt owns: what it has kept of them follows.

use sterna_tests::libvirt::{self, Domain};

use super::*;

/// A stage with a busy VM `web` that libvirt owns.
fn libvirt_stage() -> Option<(Stage, Domain, PathBuf)> {
    if !libvirt::have() {
        return None;
    }
    let stage = Stage::new();
    let old = stage.scratch.path("web.raw");
    write_guest(&old, 64 * MIB, 32 * MIB);
    let domain = Domain::start(&stage.scratch, &old, "raw");
    let line = format!("vm add web --libvirt {} {}", libvirt::URI, domain.name());
    stage.daemon.sterna(&line).ok();
    until("the guest to write", seconds(60), || (number_on(&old) > 0).then_some(()));
    Some((stage, domain, old))
}

#[test]
fn a_disk_of_libvirts_is_adopted_only_if_qemu_would_look_for_sterna_again() {
    let Some((stage, domain, old)) = libvirt_stage() else { return };
    let answer = stage.daemon.sterna("vm adopt web vda --on there");
    if answer.code == 0 {
        assert!(domain.kept().contains("<reconnect"), "{}", domain.kept());
        return;
    }
    answer.fails_with(&["<reconnect>", "a newer libvirt"]);
    assert_eq!(image(&stage), old);
    nothing_is_left(&stage);
}

/// All of an adoption but what older versions of libvirt lack: here it says that it would
/// have QEMU look for the server again, and the daemon is not restarted.
#[test]
fn a_disk_of_libvirts_is_adopted_and_is_there_at_the_next_start() {
    let Some((mut stage, domain, old)) = libvirt_stage() else { return };
    let real = programs::find("virsh").expect("it is there");
    let says = format!(
        "#!/bin/sh\ncase \"$*\" in *domxml-to-native*) echo reconnect-delay;;\n\
         *) exec {} \"$@\";; esac\n",
        real.display()
    );
    stage.daemon.stop();
    stage.daemon.use_instead(&stage.scratch, "virsh", &says);
    stage.daemon.restart();
    let line = "vm adopt web vda --on there --rate 1M --detach";
    let id = stage.daemon.json(line)["id"].as_u64().expect("a number");
    stage.daemon.wait_for(id, "copying", seconds(30));
    stage.daemon.cancel(id);
    assert_eq!(image(&stage), old);
    nothing_is_left(&stage);
    stage.daemon.sterna("vm adopt web vda --on there").ok();
    assert_eq!(disk(&stage)["disk"], "web-vda");
    let id = stage.daemon.disk("web-vda")["id"].as_str().expect("an id").to_owned();
    assert!(domain.kept().contains(&format!("name='{id}'")), "{}", domain.kept());
    let ours = stage.daemon.image("web-vda");
    is_written(&ours);
    domain.destroy();
    domain.start_again();
    assert_eq!(disk(&stage)["disk"], "web-vda");
    is_written(&ours);
    domain.destroy();
    same_but_the_number(&old, &ours);
}

#[test]
fn a_disk_of_ours_that_libvirt_has_is_released_and_is_a_file_at_the_next_start() {
    if !libvirt::have() {
        return;
    }
    let stage = Stage::new();
    let first = stage.here.join("web.raw");
    write_guest(&first, 64 * MIB, 32 * MIB);
    let import = format!("disk import web --on here {}", first.display());
    stage.daemon.sterna(&import).ok();
    let source = format!(
        "<source protocol='nbd' name='web'><host transport='unix' socket='{}'/></source>",
        stage.daemon.nbd_socket().display()
    );
    let domain = Domain::start_with(&stage.scratch, "network", &source, "raw");
    let line = format!("vm add web --libvirt {} {}", libvirt::URI, domain.name());
    stage.daemon.sterna(&line).ok();
    until("the guest to write", seconds(60), || (number_on(&first) > 0).then_some(()));
    assert_eq!(disk(&stage)["disk"], "web");
    let file = stage.scratch.path("back.raw");
    stage.daemon.sterna(&format!("vm release web vda --to {}", file.display())).ok();
    assert_eq!(
        (image(&stage), disk(&stage)["disk"].clone()),
        (file.clone(), Value::Null)
    );
    is_written(&file);
    assert!(domain.kept().contains(&file.display().to_string()), "{}", domain.kept());
    domain.destroy();
    domain.start_again();
    is_written(&file);
    stage.daemon.sterna("disk remove web").ok();
}
