//! What the kernel counts of memory is shown without a word to a VM, and what is out of order is a
//! warning.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;
use sterna_tests::metrics::Scrape;
use sterna_tests::vms::{Vm, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, http, programs, until};

use super::{DATA, Scene, tier};
use crate::metrics::contrib;

/// As long as nobody waits for a VM.
const AT_ONCE: std::time::Duration = seconds(1);

impl Scene {
    /// What the kernel counts.
    fn top(&self) -> Value {
        let reply =
            http::ask(self.stage.daemon.api_socket(), "GET", "/v1/top/memory", "");
        assert_eq!(reply.status, 200, "{reply:?}");
        serde_json::from_str(&reply.body).expect("JSON")
    }

    /// Waits until the VM's process was seen.
    fn is_seen(&self) -> Value {
        until("the VM's process to be seen", seconds(30), || {
            let top = self.top();
            top["vms"][0]["faults_per_s"].is_f64().then_some(top)
        })
    }
}

#[test]
fn what_the_kernel_counts_is_shown_though_the_vm_hangs() {
    let Some(scene) = Scene::set() else { return };
    let top = scene.is_seen();
    let vm = &top["vms"][0];
    assert_eq!((&vm["vm"], &vm["size"]), (&"db".into(), &(192 * MIB).into()), "{vm}");
    assert!(vm["resident"].as_u64() >= Some(DATA), "{vm}");
    scene.stage.daemon.sterna("memory sleep db --all").ok();
    scene.vm.hang();
    let asleep = until("it to be counted as asleep", seconds(10), || {
        let began = Instant::now();
        let scrape = Scrape::of(&scene.stage.daemon);
        assert!(began.elapsed() < AT_ONCE, "it took {:?}", began.elapsed());
        let out = scrape.get("sterna_vm_memory_out_bytes{vm=\"db\"}")?;
        (out >= DATA as f64).then_some(scrape)
    });
    assert_eq!(asleep.value("sterna_vm_memory_asleep{vm=\"db\"}"), 1.0);
    assert_eq!(asleep.value("sterna_swap_tier_in_use{tier=\"fast\"}"), 1.0);
    assert_eq!(
        asleep.value("sterna_swap_tier_size_bytes{tier=\"fast\"}"),
        (512 * MIB) as f64
    );
    assert!(asleep.value("sterna_swap_tier_used_bytes{tier=\"fast\"}") >= DATA as f64);
    let top = scene.top();
    assert_eq!(top["vms"][0]["state"], "asleep", "{top}");
    let tier = &top["tiers"][0];
    // A directory may be on a file system of which the kernel counts nothing.
    if let Some(device) = tier["device"].as_str() {
        let reads = format!(
            "sterna_swap_device_reads_total{{tier=\"fast\",device=\"{device}\"}}"
        );
        assert!(asleep.get(&reads).is_some(), "{}", asleep.text);
    }
    scene.vm.go_on();
    scene.stage.daemon.sterna("memory wake db").ok();
    let woken = until("the wake to be counted", seconds(120), || {
        let scrape = Scrape::of(&scene.stage.daemon);
        (scrape.value("sterna_vm_wakes_total") == 1.0).then_some(scrape)
    });
    assert!(woken.value("sterna_vm_wake_bytes_total") >= DATA as f64);
    assert_eq!(woken.value("sterna_vm_wake_failed_bytes_total"), 0.0);
    let names = woken.names();
    let lacking = contrib::not_explained(&names);
    assert!(lacking.is_empty(), "{lacking:?}");
}

#[test]
fn vms_that_hang_delay_no_other_in_the_list() {
    let Some(scene) = Scene::set() else { return };
    let (daemon, scratch) = (&scene.stage.daemon, &scene.stage.scratch);
    let hung: Vec<Vm> = (0..3)
        .map(|number| {
            let name = format!("hung-{number}");
            let disk = scratch.path(&format!("{name}.raw"));
            write_guest(&disk, 8 * MIB, MIB);
            let more = ["-m", "32"];
            let vm = Vm::start(scratch, &name, &disk, "raw", &more);
            let socket = vm.socket().display();
            daemon.sterna(&format!("vm add {name} --qmp {socket}")).ok();
            vm
        })
        .collect();
    hung.iter().for_each(Vm::hang);
    let began = Instant::now();
    let all = daemon.json("memory show");
    let took = began.elapsed();
    let vms = all["vms"].as_array().expect("VMs");
    assert_eq!(vms.len(), 4);
    assert!(vms[0]["resident"].as_u64() >= Some(DATA), "{all}");
    assert!(vms[1..].iter().all(|vm| vm["problem"].is_string()), "{all}");
    // One has some seconds to answer, and all have them together.
    assert!(took < seconds(9), "it took {took:?}");
    println!("the list took {took:?}");
    hung.iter().for_each(Vm::go_on);
}

#[test]
fn a_tier_that_is_not_in_use_is_a_warning_and_a_figure() {
    let Some(scene) = Scene::set() else { return };
    let file = PathBuf::from(tier(&scene)["path"].as_str().expect("a path"));
    assert!(scene.stage.daemon.warnings("swap tier fast").is_empty());
    programs::run("swapoff", [&file]);
    let warnings = scene.stage.daemon.warnings("swap tier fast");
    assert!(warnings[0].contains("does not swap to"), "{warnings:?}");
    until("it to be counted", seconds(10), || {
        let scrape = Scrape::of(&scene.stage.daemon);
        let in_use = scrape.get("sterna_swap_tier_in_use{tier=\"fast\"}");
        (in_use == Some(0.0)).then_some(())
    });
}

#[test]
fn the_state_of_the_host_is_counted_as_it_is_shown() {
    let Some(scene) = Scene::set() else { return };
    let daemon = &scene.stage.daemon;
    let total = daemon.json("memory show")["total"].as_u64().expect("bytes");
    // No host has all of its memory available.
    daemon.sterna(&format!("memory auto manual --reserve {total}")).ok();
    let states = ["high", "soft", "hard", "low"];
    until("it to be counted", seconds(10), || {
        let scrape = Scrape::of(daemon);
        let is_read = scrape.value("sterna_host_memory_reserve_bytes") == total as f64;
        let counted = scrape.value("sterna_host_memory_state") as usize;
        let shown = daemon.json("memory show")["state"].clone();
        (is_read && counted > 0 && shown == states[counted]).then_some(())
    });
}
