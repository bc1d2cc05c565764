//! What there is, counted, and what of it somebody should look at.
//!
//! A warning is about what the lists show as out of order, and comes from where
//! they have it: a monitor that counts warnings misses nothing that people see.

use sterna_api::{Counts, Warning};

use crate::daemon::Daemon;
use crate::error::Result;
use crate::store::DiskRecord;

/// How many disks a warning names: a line of names of common length.
const NAMED: usize = 5;

impl Daemon {
    /// Everything, counted, with the warnings.
    pub(crate) fn survey(&self) -> Result<(Counts, Vec<Warning>)> {
        let mut counts = Counts::default();
        let mut warnings = Vec::new();
        let disks = self.store.disks()?;
        self.survey_datastores(&disks, &mut counts, &mut warnings);
        self.survey_disks(&disks, &mut counts, &mut warnings);
        self.survey_migrations(&mut counts, &mut warnings)?;
        Ok((counts, warnings))
    }

    fn survey_datastores(
        &self,
        disks: &[DiskRecord],
        counts: &mut Counts,
        warnings: &mut Vec<Warning>,
    ) {
        for (shelf, found) in self.look_at_shelves() {
            counts.datastores += 1;
            if let Some(oversold) = self.oversold(&shelf, disks) {
                let about = format!("datastore {}", shelf.name());
                let message = format!("it cannot keep what is reserved: {oversold}");
                let hint = "reserve less, or move disks of these classes away".into();
                warnings.push(Warning { about, message, hint });
            }
            let Err(problem) = found else { continue };
            let name = shelf.name();
            let on_it = disks.iter().filter(|disk| disk.datastore == name);
            let on_it: Vec<&str> = on_it.map(|disk| disk.name.as_str()).collect();
            warnings.push(offline(name, &problem, &on_it));
        }
    }

    fn survey_disks(
        &self,
        disks: &[DiskRecord],
        counts: &mut Counts,
        warnings: &mut Vec<Warning>,
    ) {
        for disk in disks {
            counts.disks += 1;
            let Some(message) = self.problem_of(disk.id) else {
                counts.disks_served += 1;
                continue;
            };
            let about = format!("disk {}", disk.name);
            let hint = format!("see `sterna disk show {}`", disk.name);
            warnings.push(Warning { about, message, hint });
        }
    }

    fn survey_migrations(
        &self,
        counts: &mut Counts,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        for migration in self.migration_records()? {
            if migration.step.ended() {
                continue;
            }
            counts.migrations += 1;
            let Some(pause) = self.standstill(&migration) else { continue };
            counts.migrations_paused += 1;
            // Without a hint somebody has asked for it.
            let Some(hint) = pause.hint else { continue };
            let about = format!("migration {}", migration.id);
            warnings.push(Warning { about, message: pause.reason, hint });
        }
        Ok(())
    }
}

/// A datastore is offline, and these disks are on it.
fn offline(name: &str, problem: &str, disks: &[&str]) -> Warning {
    let about = format!("datastore {name}");
    let message = match on_it(disks) {
        Some(disks) => format!("offline, with {disks} on it: {problem}"),
        None => format!("offline: {problem}"),
    };
    let hint = format!(
        "put that right: it is tried again every few seconds, and what waits for it \
         goes on by itself (`sterna datastore show {name}`)"
    );
    Warning { about, message, hint }
}

/// Disks by name, as many as a line holds.
fn on_it(disks: &[&str]) -> Option<String> {
    let (named, others) = disks.split_at(disks.len().min(NAMED));
    let names = named.join(", ");
    match (named.len(), others.len()) {
        (0, _) => None,
        (1, 0) => Some(format!("disk {names}")),
        (_, 0) => Some(format!("disks {names}")),
        (_, more) => Some(format!("disks {names} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offline_datastore_names_its_disks_but_not_hundreds_of_them() {
        let message = |disks: &[&str]| offline("slow", "gone", disks).message;
        assert_eq!(message(&[]), "offline: gone");
        assert_eq!(message(&["a"]), "offline, with disk a on it: gone");
        assert_eq!(message(&["a", "b"]), "offline, with disks a, b on it: gone");
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        let few = "offline, with disks a, b, c, d, e and 2 more on it: gone";
        assert_eq!(message(&many), few);
    }
}
