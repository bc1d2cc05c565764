//! The hooks of a plan: programs that stop what runs on a tile's disks, and start it again.
//!
//! Each runs on a thread of its own, and nobody who holds a plan's lock waits for it. That
//! it is to run is in the state before it does, and what became of it before anything
//! follows from that; so after a kill it is run once more.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sterna_api::{Error, Result, Tile};
use sterna_os::{lock, program};
use sterna_placement::waves::Event;
use sterna_state::PlanRecord;
use tokio::process::Command;
use tokio::runtime::Builder;

use super::{Heard, Live};
use crate::Planner;

/// How long a hook may take: a database that stops writes out what it holds in memory, and
/// one that starts may have to recover.
const END_WITHIN: Duration = Duration::from_secs(600);

/// What a hook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Stop,
    Start,
}

impl Hook {
    fn name(self) -> &'static str {
        match self {
            Hook::Stop => "stop",
            Hook::Start => "start",
        }
    }

    /// The program and its arguments, if the tile has one.
    fn of(self, tile: &Tile) -> Option<&Vec<String>> {
        match self {
            Hook::Stop => tile.stop.as_ref(),
            Hook::Start => tile.start.as_ref(),
        }
    }

    fn event(self, group: usize, done: bool) -> Event {
        match self {
            Hook::Stop => Event::WorkloadStopped(group, done),
            Hook::Start => Event::WorkloadStarted(group, done),
        }
    }
}

impl Planner {
    /// Runs a hook; what becomes of it is heard later.
    pub(super) fn run_hook(self: &Arc<Self>, live: &Arc<Live>, group: usize, hook: Hook) {
        let (planner, known) = (self.clone(), live.clone());
        let run = move || {
            let outcome = planner.wait_for_hook(&known, group, hook);
            lock(&known.inbox).push(told(hook, group, outcome));
            planner.plans.waker.wake();
        };
        let spawned = thread::Builder::new().name("sterna-plan-hook".into()).spawn(run);
        if let Err(error) = spawned {
            let outcome = Err(format!("cannot start a thread for a hook: {error}"));
            lock(&live.inbox).push(told(hook, group, outcome));
        }
    }

    fn wait_for_hook(
        &self,
        live: &Live,
        group: usize,
        hook: Hook,
    ) -> std::result::Result<(), String> {
        let tile = lock(&live.state).record.design.tiles.get(group).cloned();
        let Some((tile, command)) =
            tile.and_then(|tile| Some((tile.clone(), hook.of(&tile)?.clone())))
        else {
            return Err("the tile has no hook".into());
        };
        let Some((path, args)) = command.split_first() else {
            return Err("the tile's hook names no program".into());
        };
        let (id, name) = (live.id, hook.name());
        tracing::info!(plan = id, tile = tile.name, path, "{name} hook");
        let mut command = Command::new(path);
        command.args(args).env("STERNA_PLAN", id.to_string());
        command.env("STERNA_TILE", &tile.name);
        let scratch = self.storage.places.state.join(format!("plan-{id}-{group}-{name}"));
        let mut given_up = live.given_up.subscribe();
        // One of its own: others' end with the daemon while a hook may still run.
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| format!("Sterna cannot run a hook: {error}"))?;
        let outcome = runtime.block_on(async {
            match hook {
                // Who gives the plan up need not wait for what hangs.
                Hook::Stop => {
                    let unwanted = async { drop(given_up.wait_for(|it| *it).await) };
                    program::run(&mut command, &scratch, END_WITHIN, unwanted).await
                }
                Hook::Start => {
                    program::run(&mut command, &scratch, END_WITHIN, pending()).await
                }
            }
        });
        match &outcome {
            Ok(()) => tracing::info!(plan = id, tile = tile.name, "{name} hook: done"),
            Err(why) => {
                tracing::error!(plan = id, tile = tile.name, path, why, "{name} hook");
            }
        }
        outcome.map_err(|why| format!("the {name} hook {path} {why}"))
    }
}

fn told(hook: Hook, group: usize, outcome: std::result::Result<(), String>) -> Heard {
    let heard = Heard::of(hook.event(group, outcome.is_ok()));
    Heard { problem: outcome.err(), ..heard }
}

/// Refuses hooks that could not be run.
pub(super) fn check_hooks(tile: &Tile) -> Result<()> {
    for hook in [Hook::Stop, Hook::Start] {
        let Some(command) = hook.of(tile) else { continue };
        let (tile, name) = (&tile.name, hook.name());
        let Some(path) = command.first() else {
            let message = format!("the {name} hook of tile {tile} names no program");
            let hint = "give the program's absolute path and its arguments, or leave the \
                        hook out";
            return Err(Error::invalid(message).hint(hint));
        };
        if !Path::new(path).is_absolute() {
            let message =
                format!("the {name} hook of tile {tile}: {path} is not an absolute path");
            let hint = "no shell runs it: give the program's absolute path, and each \
                        argument by itself";
            return Err(Error::invalid(message).hint(hint));
        }
        if let Err(why) = program::check(Path::new(path)) {
            let message = format!("the {name} hook of tile {tile}: {path} {why}");
            let hint = "give a program that the daemon may run";
            return Err(Error::invalid(message).hint(hint));
        }
    }
    Ok(())
}

/// Refuses a plan whose hooks could not be run any more: it may be a week old.
pub(super) fn check_hooks_still(record: &PlanRecord) -> Result<()> {
    record.design.tiles.iter().try_for_each(check_hooks)
}
