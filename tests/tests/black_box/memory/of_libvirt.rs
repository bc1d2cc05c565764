//! Memory of VMs that libvirt owns: which process has it is seen from the VM's UUID.

use sterna_tests::libvirt;
use sterna_tests::vms::{is_written, number_on};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, programs, until};

use super::{SwapEnds, TIER, can_swap, turn};
use crate::vms_of_libvirt::libvirt_stage;

#[test]
fn memory_of_a_vm_that_libvirt_owns_goes_out_and_comes_back() {
    let _turn = turn();
    let Some((stage, domain, image)) = libvirt_stage() else { return };
    if !can_swap(&stage.scratch.path("probe")) {
        return programs::skip("this machine lets nobody add swap");
    }
    let virsh = |word| programs::run("virsh", ["-c", libvirt::URI, word, domain.name()]);
    stage.daemon.sterna(&format!("swap add fast {TIER}")).ok();
    let _ends = SwapEnds(&stage);
    // A guest that does something wakes at once.
    virsh("suspend");
    stage.daemon.sterna("memory sleep web --all").ok();
    let asleep = stage.daemon.json("memory show web");
    // The kernel drops pages of zeroes, of which such a guest has most.
    assert!(asleep["out"].as_u64() > Some(0), "{asleep}");
    assert!(asleep["resident"].as_u64() < Some(MIB), "{asleep}");
    assert_eq!(asleep["size"], 64 * MIB, "{asleep}");
    virsh("resume");
    stage.daemon.sterna("memory wake web").ok();
    assert_eq!(stage.daemon.json("memory show web")["out"], 0);
    let before = number_on(&image);
    until("the guest to write on", seconds(60), || {
        (number_on(&image) > before).then_some(())
    });
    is_written(&image);
}
