//! What a disk, a class or a datastore did over time.

use sterna_api::{Error, NO_CLASS, Result, Timeline};
use sterna_core::qos::ClassId;
use sterna_os::clock;
use sterna_telemetry::samples::Subject;

use crate::Server;

/// The most points of a chart: a screen is not wider.
pub(crate) const POINTS_MOST: usize = 4000;

/// What is shown unless a request says otherwise: the last ten minutes.
const USUAL_MS: u64 = 600_000;

impl Server {
    /// What something did from one moment to another (seconds since 1970).
    pub(crate) fn timeline(
        &self,
        of: &str,
        [from, to]: [Option<f64>; 2],
        points: usize,
        even: bool,
    ) -> Result<Timeline> {
        if !(1..=POINTS_MOST).contains(&points) {
            let message = format!("a chart cannot have {points} points");
            let hint = format!("it can have 1 to {POINTS_MOST}");
            return Err(Error::invalid(message).hint(hint));
        }
        let subject = self.subject(of)?;
        let now_ms = clock::now_ms();
        let to_ms = to.map_or(Ok(now_ms), millis)?.min(now_ms);
        let from_ms = from.map_or(Ok(to_ms.saturating_sub(USUAL_MS)), millis)?;
        if from_ms >= to_ms {
            let message = "a chart's first moment must be before its last one, and past";
            return Err(Error::invalid(message).hint("give `from` before `to`"));
        }
        let samples = &self.storage.samples;
        let columns = match even {
            true => samples.even_chart(&subject, from_ms, to_ms, points),
            false => samples.chart(&subject, from_ms, to_ms, points),
        };
        Ok(Timeline { of: of.into(), from_ms, to_ms, now_ms, columns })
    }

    /// What `disk:db`, `class:gold`, `datastore:fast` and `all` mean.
    fn subject(&self, of: &str) -> Result<Subject> {
        match of.split_once(':') {
            None if of == "all" => Ok(Subject::All),
            Some(("disk", name)) => Ok(Subject::Disk(self.storage.disk_record(name)?.id)),
            Some(("class", NO_CLASS)) => Ok(Subject::Class(ClassId::OTHERS)),
            Some(("class", name)) => {
                let snapshot = self.levels.snapshot();
                let found = snapshot.entries().find(|entry| entry.record.name == name);
                let class = found.ok_or_else(|| Error::not_found("class", name))?;
                Ok(Subject::Class(class.record.id))
            }
            Some(("datastore", name)) => {
                Ok(Subject::Datastore(self.storage.handle(name)?.name().into()))
            }
            _ => Err(Error::invalid(format!("`{of}` is nothing that has a timeline"))
                .hint("give disk:NAME, class:NAME, datastore:NAME or all")),
        }
    }
}

/// A moment in milliseconds.
fn millis(seconds: f64) -> Result<u64> {
    let ms = seconds * 1e3;
    match (0.0..=1e15).contains(&ms) {
        true => Ok(ms as u64),
        false => Err(Error::invalid(format!("`{seconds:?}` is no moment"))
            .hint("give seconds since 1970")),
    }
}
