//! What a move will take: what `core` learns that from, and how right it was.
//!
//! Lessons are the moves there were, as the state has them: nothing else is kept, so a
//! restart of the daemon forgets nothing. If the operator changed a move, or if it paused,
//! Sterna neither learns from it nor scores its prediction. A move that began before a
//! datastore was added says nothing of that datastore: then the name was another one's.
//!
//! Somebody waits for a prediction. Both datastores are asked at once, and have [`ASKED`] for
//! all that is asked of them; what they did not say by then is named.

mod refusals;

use std::sync::Arc;
use std::time::Duration;

use sterna_api::{
    AskGuard, BestHour, Guard, LearnedFrom, Predict, Predicted, Prediction,
    PredictionScores, Result, StartMigration, Weakest,
};
use sterna_core::Nanos;
use sterna_core::guard::Experience;
use sterna_core::measure::{LqFit, Summary};
use sterna_core::predict::{
    self, Ends, Lesson, Move, PredictionOutcome, Scores, Shown, Source, Speed, Terms,
    Week, Work,
};
use sterna_os::clock;
use sterna_state::{DiskRecord, Forecast, MigrationRecord};
use sterna_storage::asker::Asker;
use sterna_storage::handle::DatastoreHandle;
use sterna_telemetry::figures::summarized;

use self::refusals::{is_silent, never_seen, not_known};
use crate::Moves;
use crate::{aim, check_elsewhere, check_rate, moment, wanted};

/// The most lessons that are looked at: an old one counts next to nothing.
const LESSONS: u32 = 64;

/// How long ago a device may have shown what it can do: its line forgets no sooner.
const SHOWN: Nanos = Nanos::from_secs(3600);

/// How long datastores have for what is asked of them, all together: with it, somebody who
/// waits has an answer in 2 s.
const ASKED: Duration = Duration::from_millis(1800);

/// How many moves scores speak of.
const SCORED: u32 = 200;

/// What the datastores of a move have said in time.
struct Answers {
    /// How many bytes are to be copied.
    bytes: u64,
    /// What they have not said.
    unasked: Vec<String>,
}

impl Moves {
    /// What a move would take, while all copies together may do so much.
    pub fn predict(
        self: &Arc<Self>,
        request: &Predict,
        copies: Option<u64>,
    ) -> Result<Prediction> {
        check_rate(request.rate)?;
        let asked = AskGuard {
            keep: request.keep,
            p99_us: request.p99_us,
            idle_only: request.idle_only,
            ..AskGuard::default()
        };
        let guard = wanted(&asked)?;
        let disk = self.storage.disk_record(&request.disk)?;
        let handle = self.storage.handle(&request.to)?;
        check_elsewhere(&disk, &request.to)?;
        // What `migrate` would refuse takes no time at all.
        let Answers { bytes, unasked } = self.ask_both(&disk, &handle)?;
        let (from, to) = (disk.datastore.clone(), request.to.clone());
        let summary = self.lately(&disk)?;
        let work = Work::of(&summary);
        let at = request.at.as_ref().map(|text| moment(text, "begin at")).transpose()?;
        // What holds copies now says nothing of another time.
        let copies = copies.filter(|_| at.is_none()).map(|most| self.share_of(most));
        let copies = copies.transpose()?;
        let held = copies.filter(|most| request.rate.is_none_or(|rate| *most < rate));
        let at_any_time = terms(request.rate, &guard);
        let at_present = Terms { limit: held.or(request.rate), ..at_any_time };
        let one = one_move(bytes, disk.size, request.verify, work, at_present);
        let learned = self.learned(&from, &to)?;
        let Some(speed) = learned.or_else(|| self.guessed(&from, &to)) else {
            let mut error = not_known(&from, &to, &self.copies_seen(&from, &to)?, &one);
            for what in unasked {
                error.message.push_str(&format!("; nor is it known {what}"));
            }
            return Err(error);
        };
        let week = Week::new(self.storage.store.hours(disk.id)?);
        let predicted = match at {
            None => told(&one, &speed, &predict::Prediction::of(&one, &speed)),
            Some(at) => match week.predict(&one, &speed, at) {
                Some(then) => told(&one, &speed, &then),
                None => return Err(never_seen(&disk.name)),
            },
        };
        let later = Move { terms: at_any_time, ..one };
        let best = week.best(&later, &speed, clock::now());
        Ok(Prediction {
            disk: disk.name,
            size: disk.size,
            from,
            to,
            guard,
            application: summarized(&summary),
            outstanding: work.outstanding,
            at,
            predicted,
            copies_held_to: held,
            best: best.map(|(at, it)| BestHour { at, likely_s: it.likely.as_secs_f64() }),
            unasked,
        })
    }

    /// What one more copy may do of what all copies together are held to.
    fn share_of(&self, most: u64) -> Result<u64> {
        let open = self.storage.store.open_migrations()?;
        let others = open.iter().filter(|record| crate::copies::copies(record)).count();
        Ok(share_beside(most, others as u64))
    }

    /// Asks both datastores of a move what a prediction goes by; refused if the destination
    /// does not take the disk, or does not answer.
    fn ask_both(
        self: &Arc<Self>,
        disk: &DiskRecord,
        to: &Arc<DatastoreHandle>,
    ) -> Result<Answers> {
        let asked = |moves: &Arc<Moves>| (moves.clone(), disk.clone(), to.clone());
        let (moves, moved, there) = asked(self);
        let takes = Asker::default()
            .ask(ASKED, move || moves.check_takes(&moved, &there, None).map(drop));
        let (_, _, there) = asked(self);
        let looks = Asker::default().ask(ASKED, move || there.look().map(drop));
        let (moves, moved, _) = asked(self);
        let has = Asker::default().ask(ASKED, move || {
            let from = moves.storage.handle(&moved.datastore).ok()?;
            match from.allocated(&moved.image, moved.size) {
                Some(allocated) => Some(allocated.min(moved.size)),
                // Some cannot tell.
                None => from.look().is_ok().then_some(moved.size),
            }
        });
        let (from, to) = (&disk.datastore, to.name());
        let mut unasked = Vec::new();
        match takes.answer() {
            Some(takes) => takes?,
            None => match looks.answer() {
                Some(Ok(())) => unasked.push(format!(
                    "whether datastore {to} takes the disk: it has not said so in time, and \
                     a move may be refused"
                )),
                Some(Err(why)) => return Err(is_silent(to, &why)),
                None => return Err(is_silent(to, "it does not answer")),
            },
        }
        let bytes = has.answer().flatten().unwrap_or_else(|| {
            unasked.push(format!(
                "how much of the disk has data: datastore {from} does not answer, so all of \
                 the disk counts"
            ));
            disk.size
        });
        Ok(Answers { bytes, unasked })
    }

    /// What is known of a move that is about to begin, beside an application that did
    /// this lately. It begins also if that is nothing. And
    /// what its guard begins with.
    pub(crate) fn forecast(
        &self,
        disk: &DiskRecord,
        request: &StartMigration,
        guard: &Guard,
        lately: &Summary,
    ) -> (Forecast, Experience) {
        let work = Work::of(lately);
        let (from, to) = (&disk.datastore, &request.to);
        let known = self.experience(from, to, &work, guard);
        let like = sterna_core::guard::Guard::new(aim(guard)).like(&known);
        let experienced = like.is_experienced();
        let forecast = Forecast { experienced, ..Forecast::of(&work) };
        // When it may not copy, and how far it is spread, the copy alone does not say.
        if guard.window.is_some() || guard.finish_by.is_some() {
            return (forecast, known);
        }
        let terms = terms(request.rate, guard);
        let told = self.told(disk, &request.to, request.verify, work, terms);
        let predicted = told.unwrap_or_else(|error| {
            tracing::warn!(disk = disk.name, %error, "no prediction");
            None
        });
        (Forecast { predicted, ..forecast }, known)
    }

    /// What the guard of a migration begins with.
    pub(crate) fn experience_for(&self, record: &MigrationRecord) -> Experience {
        let Some(forecast) = record.forecast else { return Experience::default() };
        let (from, to) = (&record.from.datastore, &record.to.datastore);
        self.experience(from, to, &forecast.work(), &record.guard)
    }

    /// What the guard of a move beside such an application begins with. If that cannot be
    /// asked, it learns anew.
    fn experience(&self, from: &str, to: &str, work: &Work, guard: &Guard) -> Experience {
        if guard.keep.is_none() && guard.p99_us.is_none() {
            return Experience::default();
        }
        let lessons = self.all_lessons(from, to).unwrap_or_else(|error| {
            tracing::warn!(from, %error, "a guard learns anew");
            Vec::new()
        });
        predict::experience(&lessons, work, &terms(None, guard)).unwrap_or_default()
    }

    /// What the moves from or to these two say, the latest first.
    fn all_lessons(&self, from: &str, to: &str) -> Result<Vec<Lesson>> {
        let past = self.past(from, to)?;
        Ok(past.iter().filter_map(|(record, ends)| lesson(record, *ends)).collect())
    }

    /// What a move of this disk will take, if anything is known of such moves.
    pub fn told(
        &self,
        disk: &DiskRecord,
        to: &str,
        verify: bool,
        work: Work,
        terms: Terms,
    ) -> Result<Option<Predicted>> {
        let Some(speed) = self.learned(&disk.datastore, to)? else { return Ok(None) };
        let one = one_move(self.to_copy(disk), disk.size, verify, work, terms);
        Ok(Some(told(&one, &speed, &predict::Prediction::of(&one, &speed))))
    }

    /// How right predictions were.
    pub fn prediction_scores(&self) -> Result<PredictionScores> {
        let ended = self.storage.store.predicted_migrations(SCORED)?;
        let outcomes: Vec<PredictionOutcome> = ended.iter().filter_map(outcome).collect();
        let scores = Scores::of(&outcomes);
        Ok(PredictionScores {
            moves: scores.count as u64,
            median_error: (scores.count > 0).then_some(scores.median_error),
            within: scores.within as u64,
            beside: scores.beside as u64,
            kept_error: (scores.beside > 0).then_some(scores.kept_error),
        })
    }

    /// What an image has in it.
    pub fn to_copy(&self, disk: &DiskRecord) -> u64 {
        let handle = self.storage.handle(&disk.datastore).ok();
        let allocated =
            handle.and_then(|handle| handle.allocated(&disk.image, disk.size));
        allocated.map_or(disk.size, |allocated| allocated.min(disk.size))
    }

    /// The speed of a copy from one datastore to another, if anything is known of it.
    pub fn learned(&self, from: &str, to: &str) -> Result<Option<Speed>> {
        let lessons = self.all_lessons(from, to)?;
        Ok(Speed::learned(&lessons).map(|speed| self.shaped(speed, from, to)))
    }

    /// The speed of a copy before the first one, by what the two devices have shown, if
    /// they have.
    fn guessed(&self, from: &str, to: &str) -> Option<Speed> {
        let [source, destination] = [from, to].map(|end| self.shown(end));
        let speed = Speed::guessed(source, destination)?;
        let lessons = self.all_lessons(from, to).unwrap_or_default();
        Some(self.shaped(speed.knowing(&lessons), from, to))
    }

    /// What a datastore's device has shown of what it can do.
    fn shown(&self, name: &str) -> Option<Shown> {
        let LqFit::Line(line) = self.storage.samples.device(name)? else { return None };
        let did = self.storage.samples.of_datastore(name, SHOWN);
        let (requests, bytes) = (did.iops(), did.bytes_per_second());
        (requests > 0.0).then(|| Shown { peak: line.peak(), size: bytes / requests })
    }

    /// A speed where one of the ends may be shaped.
    fn shaped(&self, speed: Speed, from: &str, to: &str) -> Speed {
        let ends = [from, to].into_iter().filter_map(|end| self.storage.handle(end).ok());
        let shapes = ends.filter_map(|end| end.record().shape?.bytes_per_second);
        match shapes.min() {
            Some(most) => speed.at_most(most as f64),
            None => speed,
        }
    }

    /// Which copies there were that one could have learned from.
    pub fn copies_seen(&self, from: &str, to: &str) -> Result<Seen> {
        let past = self.past(from, to)?;
        Ok(Seen::of(past.into_iter().map(|(record, _)| record)))
    }

    /// The latest moves from or to these two, and what they had in common with one from the
    /// one to the other.
    fn past(&self, from: &str, to: &str) -> Result<Vec<(MigrationRecord, Ends)>> {
        let added =
            |name: &str| self.storage.handle(name).map_or(0, |it| it.record().added);
        let (source, destination) = ((from, added(from)), (to, added(to)));
        let past = self.storage.store.lessons(from, to, LESSONS)?.into_iter();
        let known = past.filter_map(|record| {
            let ends = common(&record, source, destination)?;
            Some((record, ends))
        });
        Ok(known.collect())
    }
}

/// Which ends a past move had that are those of one from and to datastores with these names,
/// added then.
fn common(
    record: &MigrationRecord,
    source: (&str, u64),
    destination: (&str, u64),
) -> Option<Ends> {
    let is =
        |(name, added): (&str, u64), end: &str| end == name && record.started >= added;
    match (is(source, &record.from.datastore), is(destination, &record.to.datastore)) {
        (true, true) => Some(Ends::Both),
        (true, false) => Some(Ends::Source),
        (false, true) => Some(Ends::Destination),
        (false, false) => None,
    }
}

/// What a copy may do of what it and so many others are held to together. Reads and writes of a
/// copy count both.
fn share_beside(most: u64, others: u64) -> u64 {
    (most / (2 * (others + 1))).max(1)
}

/// Copies from or to two datastores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many there were.
    copies: usize,
    /// How many of them had a limit of their own.
    limited: usize,
    /// The highest of those limits, bytes per second.
    most: Option<u64>,
}

impl Seen {
    fn of(past: impl Iterator<Item = MigrationRecord>) -> Seen {
        past.fold(Seen::default(), |seen, record| Seen {
            copies: seen.copies + 1,
            limited: seen.limited + usize::from(record.rate.is_some()),
            most: seen.most.max(record.rate),
        })
    }

    /// The highest limit, if there were copies and each of them had one.
    pub fn all_limited_to(&self) -> Option<u64> {
        self.most.filter(|_| self.limited == self.copies)
    }
}

/// A move of a disk, of which so many bytes are to be copied.
pub fn one_move(bytes: u64, size: u64, verify: bool, work: Work, terms: Terms) -> Move {
    let compared = if verify { size } else { 0 };
    Move { bytes, compared, work, terms }
}

/// What a move that was completed says of one that has these ends in common with it.
fn lesson(record: &MigrationRecord, ends: Ends) -> Option<Lesson> {
    let report = record.report.filter(|report| report.compared.is_none())?;
    // What was held back by something else does not say what it could have done.
    let guard = &record.guard;
    if record.rate.is_some() || guard.window.is_some() || guard.finish_by.is_some() {
        return None;
    }
    Some(Lesson {
        ends,
        rate: report.average_rate,
        bytes: report.copied,
        work: record.forecast?.work(),
        terms: terms(None, guard),
        kept: record.application.kept(),
        experienced: record.forecast?.experienced,
        experience: record.experience.map(Experience::from),
    })
}

fn outcome(record: &MigrationRecord) -> Option<PredictionOutcome> {
    let (told, report) = (record.forecast?.predicted?, record.report?);
    let range = (told.least_s, told.most_s);
    let kept = told.kept.zip(record.application.kept());
    Some(PredictionOutcome {
        likely: told.likely_s,
        range,
        took: report.duration_s,
        kept,
    })
}

/// What a move is held to, as predictions see it.
pub fn terms(limit: Option<u64>, guard: &Guard) -> Terms {
    let Guard { keep, p99_us, idle_only, .. } = *guard;
    Terms { limit, keep, bounded: p99_us.is_some(), idle_only }
}

/// A prediction in the API's form.
pub fn told(one: &Move, speed: &Speed, it: &predict::Prediction) -> Predicted {
    let (learned_from, moves) = match speed.source {
        Source::Moves(count) => (LearnedFrom::Moves, Some(count as u64)),
        Source::Ends => (LearnedFrom::Ends, None),
        Source::OneEnd => (LearnedFrom::OneEnd, None),
        Source::Devices => (LearnedFrom::Devices, None),
    };
    Predicted {
        bytes: one.bytes,
        likely_s: it.likely.as_secs_f64(),
        least_s: it.least.as_secs_f64(),
        most_s: it.most.as_secs_f64(),
        rate: it.rate,
        share: it.share,
        kept: Some(it.kept),
        weakest: match it.weakest {
            predict::Weakest::Storage => Weakest::Storage,
            predict::Weakest::Limit => Weakest::Limit,
            predict::Weakest::Promise => Weakest::Promise,
            predict::Weakest::Application => Weakest::Application,
        },
        learned_from,
        moves,
        guess: speed.source.is_guess(),
    }
}

#[cfg(test)]
mod tests {
    use super::share_beside;

    #[test]
    fn copies_share_what_they_are_held_to_and_each_reads_and_writes() {
        assert_eq!(share_beside(64 << 20, 0), 32 << 20);
        assert_eq!(share_beside(64 << 20, 3), 8 << 20);
        assert_eq!(share_beside(1, 3), 1, "a limit of nothing is none");
    }
}
