//! What is recommended, carried out by itself: by VM migrations from QEMU to QEMU.

use sterna_api::{Automation, DrsSettings, Result};
use sterna_os::lock;
use sterna_placement::hosts::{Acted, Advice, Carrier, Recommended, Wish, act};
use sterna_state::{Entry, History, Registry, SeatRecord};

use super::round::now;
use super::scene::DrsScene;
use crate::Planner;

/// QEMU, as it migrates VMs.
struct Qemu<'d> {
    planner: &'d Planner,
    scene: &'d DrsScene,
}

impl Carrier for Qemu<'_> {
    fn carry(&mut self, one: &Recommended) -> Result<(), String> {
        let begun = self.planner.apply_by_itself(self.scene, one);
        begun.map_err(|error| error.to_string())
    }
}

fn wish(settings: &DrsSettings) -> Wish {
    match settings.automation {
        Automation::Manual => Wish::Nothing,
        Automation::Partial => Wish::Repairs,
        Automation::Full => Wish::All,
    }
}

impl Planner {
    /// Carries out what is recommended, as far as that is wished.
    pub(super) fn act_on(
        &self,
        registry: &Registry,
        scene: &DrsScene,
        advice: &Advice,
        held: bool,
    ) -> Result<()> {
        let mut qemu = Qemu { planner: self, scene };
        let under_way = registry.transfers.len();
        match act(advice, wish(&registry.settings), held, under_way, &mut qemu) {
            Acted::Nothing => Ok(()),
            Acted::Begun(one) => {
                let (vm, to) = (&scene.vms[one.vm], &scene.hosts[one.to]);
                tracing::info!(vm, to, "DRS moves it");
                Ok(())
            }
            Acted::Refused(one, why) => {
                let vm = &scene.vms[one.vm];
                tracing::warn!(vm, why, "DRS cannot move it");
                self.note_failure(vm, &why)
            }
        }
    }

    /// A VM stays for a while, because it could not be migrated.
    fn note_failure(&self, vm: &str, why: &str) -> Result<()> {
        let noted = self.drs.ledger.change(&mut |registry| {
            let Some(assignment) =
                registry.assignments.iter().find(|assignment| assignment.vm == vm)
            else {
                return Ok(Vec::new());
            };
            let Some(host) = &assignment.host else { return Ok(Vec::new()) };
            let mut state = lock(&self.drs.state);
            state.settle(registry);
            state.failures.insert(vm.to_owned(), why.to_owned());
            state.cooldowns.failed(now(), vm, host, &registry.cooldown_settings());
            let history = state.cooldowns.history(vm).map(History::of);
            Ok(vec![Entry::Assignment(SeatRecord { history, ..assignment.clone() })])
        });
        noted.map(drop)
    }
}
