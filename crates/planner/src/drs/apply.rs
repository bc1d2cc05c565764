//! Recommendations that are carried out: the VMs of one go to the hosts that it names.

use sterna_api::{Error, Result, StartTransfer, Transfer};
use sterna_machines::{VmMigrationOptions, WantedVmMigration, socket_of};
use sterna_moves::check_rate;
use sterna_placement::hosts::{Recommended, waits};

use super::round::now;
use super::scene::DrsScene;
use crate::Planner;

/// The VM of a recommendation, or both if two change places.
fn wanted(scene: &DrsScene, one: &Recommended) -> Vec<WantedVmMigration> {
    let wanted = |vm: usize, from: usize, to: usize| WantedVmMigration {
        vm: scene.vms[vm].clone(),
        from: scene.hosts[from].clone(),
        to: scene.hosts[to].clone(),
        reason: scene.aim(one.goal, one.from),
        priority: one.priority,
    };
    let back = one.back.map(|back| wanted(back, one.to, one.from));
    [wanted(one.vm, one.from, one.to)].into_iter().chain(back).collect()
}

impl Planner {
    /// Carries out what is recommended for a VM now.
    pub fn apply_recommendation(&self, request: &StartTransfer) -> Result<Vec<Transfer>> {
        check_rate(request.rate)?;
        let vm = &request.vm;
        self.machines.vm_record(vm)?;
        self.machines.check_no_vm_migration(vm)?;
        let found = self.with_drs(|registry, state| {
            let (scene, advice) = state.advice(registry, now());
            let named = |at: usize| scene.vms[at] == *vm;
            let of_it = |one: &&Recommended| named(one.vm) || one.back.is_some_and(named);
            let one = advice.moves.iter().find(of_it)?;
            let held = state.cooldowns.is_held(&registry.cooldown_settings())
                || !waits(one.goal);
            Some((wanted(&scene, one), held))
        })?;
        let Some((wanted, held)) = found else {
            let message = format!("DRS recommends nothing for VM {vm}");
            return Err(Error::invalid(message)
                .hint(format!("`sterna drs explain {vm}` gives the reason")));
        };
        if !held {
            let message = format!("the recommendation for VM {vm} may still disappear");
            let hint = "a recommendation must last for some checks in a row: `sterna \
                        drs recommend` shows how many";
            return Err(Error::invalid(message).hint(hint));
        }
        let options = VmMigrationOptions {
            qmp: request.qmp.as_deref().map(socket_of).transpose()?,
            rate: request.rate,
            automatic: false,
        };
        if options.qmp.is_some() && wanted.len() > 1 {
            let [one, other] = [&wanted[0].vm, &wanted[1].vm];
            let message = format!("{one} and {other} change places, and one QEMU waits");
            return Err(Error::invalid(message).hint(
                "set a program that starts VMs for both hosts: `sterna host program`",
            ));
        }
        self.machines.start_vm_migrations(&wanted, &options)
    }

    /// Carries out a recommendation that nobody has asked to be carried out.
    pub(super) fn apply_by_itself(
        &self,
        scene: &DrsScene,
        one: &Recommended,
    ) -> Result<()> {
        let options =
            VmMigrationOptions { automatic: true, ..VmMigrationOptions::default() };
        self.machines.start_vm_migrations(&wanted(scene, one), &options).map(drop)
    }
}
