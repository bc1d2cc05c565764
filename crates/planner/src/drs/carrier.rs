//! What is recommended, carried out by itself: by transfers from QEMU to QEMU.

use std::sync::Arc;

use sterna_api::{Automation, DrsSettings, Result};
use sterna_core::place::hosts::{Acted, Advice, Carrier, Recommended, Wish, act};
use sterna_os::lock;
use sterna_state::{Entry, Registry, SeatRecord};

use super::hold;
use super::round::{history, now};
use super::scene::Scene;
use super::transfers::Asked;
use crate::Planner;

/// QEMU, as it moves machines.
struct Qemu<'d> {
    planner: &'d Arc<Planner>,
    scene: &'d Scene,
}

impl Carrier for Qemu<'_> {
    fn carry(&mut self, one: &Recommended) -> Result<(), String> {
        let asked = Asked { automatic: true, ..Asked::default() };
        let begun = self.planner.transfer_recommended(self.scene, one, &asked);
        begun.map(drop).map_err(|error| error.to_string())
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
        self: &Arc<Self>,
        registry: &Registry,
        scene: &Scene,
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

    /// A machine stays for a while, because it could not be moved.
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
            state.cooldowns.failed(now(), vm, host, &hold(&registry.settings));
            let mut known = state.cooldowns.histories();
            let kept =
                known.find(|(name, _)| *name == vm).map(|(_, known)| history(known));
            Ok(vec![Entry::Assignment(SeatRecord {
                history: kept,
                ..assignment.clone()
            })])
        });
        noted.map(drop)
    }
}
