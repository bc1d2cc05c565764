//! Where a new disk goes for which no datastore was named, and why.

use sterna_api::{Automation, ChosenDatastore, Error, PassedOver, Result};
use sterna_core::Percent;
use sterna_placement::storage::{Because, Chance, NewDisk, Over, choose};

use super::asked;
use super::run::seconds;
use super::scene::AWAY;
use super::settings::bounds_of;
use crate::Planner;

impl Planner {
    /// Chooses a datastore for a new disk of this size.
    pub fn choose_datastore(&self, size: u64) -> Result<(String, ChosenDatastore)> {
        let settings = self.balancer.settings();
        let scene = self.scene(seconds(settings.window_s))?;
        let bounds = bounds_of(&asked(&settings));
        let choice = choose(&scene.inventory, &bounds, NewDisk { size });
        let said = |at: usize| {
            let (datastore, is_chosen) = (scene.names[at].clone(), choice.to == Some(at));
            let reason = match &choice.all[at] {
                Ok(chance) => would_be(chance),
                Err(Because::Closed) => scene.closed[at].unwrap_or(AWAY).to_owned(),
                Err(because) => refuses(*because),
            };
            (is_chosen, PassedOver { datastore, reason })
        };
        let (chosen, others): (Vec<_>, Vec<_>) =
            (0..scene.names.len()).map(said).partition(|(is_chosen, _)| *is_chosen);
        let others: Vec<PassedOver> =
            others.into_iter().map(|(_, other)| other).collect();
        let Some((_, PassedOver { datastore, reason })) = chosen.into_iter().next()
        else {
            return Err(nowhere(&others));
        };
        if settings.automation == Automation::Manual {
            let message = "no datastore is given, and Storage DRS does not choose one \
                           (automation manual)";
            return Err(Error::invalid(message).hint(format!(
                "give a datastore: Storage DRS would choose `--on {datastore}` \
                 ({reason}); or `sterna storage-drs set --automation partial`"
            )));
        }
        Ok((datastore, ChosenDatastore { reason, others }))
    }
}

/// What a datastore would be like with the new disk.
fn would_be(chance: &Chance) -> String {
    let room = Percent(chance.side.taken);
    let time = match chance.side.latency {
        Some(latency) => format!("p95 {latency}"),
        None => "no load".into(),
    };
    let nearest = match chance.nearest {
        Over::Space if chance.used > 1.0 => {
            "thin disks could grow beyond its space".to_owned()
        }
        Over::Space => format!("{} of the bound for space used up", Percent(chance.used)),
        Over::Latency => {
            format!("{} of the bound for response times used up", Percent(chance.used))
        }
    };
    format!("{room} used with the whole disk, {time}; {nearest}")
}

/// Why a datastore does not take it.
fn refuses(because: Because) -> String {
    match because {
        Because::Full(part) => {
            format!("too full: {} used with the whole disk", Percent(part))
        }
        Because::Slow(latency) => {
            format!("over its bound for response times: p95 {latency}")
        }
        _ => AWAY.into(),
    }
}

fn nowhere(others: &[PassedOver]) -> Error {
    if others.is_empty() {
        let message = "there is no datastore for a disk";
        return Error::unavailable(message)
            .hint("add a datastore: `sterna datastore add NAME LOCATION`");
    }
    let reasons: Vec<String> =
        others.iter().map(|it| format!("{}: {}", it.datastore, it.reason)).collect();
    let message = format!("no datastore should take the disk ({})", reasons.join("; "));
    Error::unavailable(message)
        .hint("give a datastore nevertheless: `--on DATASTORE`; or make room")
}
