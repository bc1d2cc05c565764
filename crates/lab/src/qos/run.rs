//! The experiment for real: goes through the phases, and asks the daemon for each
//! phase's service level as any client would.
//!
//! A wish counts from the moment at which it is sent. What the daemon says of a target
//! is looked at with every window, and noted when it changes.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use sterna_api::{CreatePolicy, CruisePhase, Policy};
use sterna_console::screen::Screen;

use super::plan::{BEFORE_OPENING, Phase, Step};
use super::stage::{APPLICATIONS, OLTP, Stage};
use super::wish::Wish;
use crate::record::{Band, Mark, Metric, Record, Track, figure};
use crate::site::Site;

/// What the daemon said of a target that it cannot reach.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    /// When.
    pub(super) at: f64,
    /// Its reason.
    pub(super) reason: String,
}

/// A phase as it went. Moments are seconds from the experiment's start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch {
    /// What was done.
    pub(super) step: Step,
    /// When it began: the moment of its wish.
    pub(super) from: f64,
    /// When it ended.
    pub(super) until: f64,
    /// What was asked for.
    pub(super) wish: Option<Wish>,
    /// When the schedule was to open and to close.
    pub(super) opening: Option<(f64, f64)>,
    /// What was said of it.
    pub(super) named: Option<Named>,
}

impl Stretch {
    /// From when on an effect of its beginning is over: caches that were empty take
    /// more for a while than what is behind them.
    pub(super) fn calm(&self) -> f64 {
        (self.from + self.until) / 2.0
    }
}

/// The experiment as it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// What was measured.
    pub(super) record: Record,
    /// The phases.
    pub(super) stretches: Vec<Stretch>,
}

impl Outcome {
    /// The first phase in which this was done.
    pub(super) fn phase(&self, step: Step) -> Option<&Stretch> {
        self.stretches.iter().find(|it| it.step == step)
    }

    /// What all but the database got together from one moment to another, in bytes per second.
    pub(super) fn others(&self, from: f64, until: f64) -> f64 {
        let others = self.record.tracks.get(1..).unwrap_or_default();
        let each = |it: &Track| figure(it.between(from, until), Metric::Bytes);
        others.iter().filter_map(each).sum()
    }
}

/// The experiment under way.
pub(super) struct Run<'s> {
    /// Before the site: applications end before their disks do.
    stage: Stage,
    site: &'s Site,
    screen: &'s Screen,
    outcome: Outcome,
    /// The policy in force, and what was last said of its target.
    policy: Option<u64>,
    said: CruisePhase,
}

impl<'s> Run<'s> {
    /// An experiment on a stage where nothing has happened yet.
    pub(super) fn new(stage: Stage, site: &'s Site, screen: &'s Screen) -> Run<'s> {
        let outcome = Outcome::default();
        let said = CruisePhase::NotStarted;
        Run { stage, site, screen, outcome, policy: None, said }
    }

    /// Goes through the phases, and ends everything.
    pub(super) async fn go(mut self, phases: &[Phase]) -> anyhow::Result<Outcome> {
        self.stage.begin();
        for phase in phases {
            let stretch = self.phase(*phase).await?;
            self.outcome.stretches.push(stretch);
        }
        self.lift().await?;
        self.outcome.record.tracks = self.stage.end()?;
        Ok(self.outcome)
    }

    async fn phase(&mut self, Phase { step, seconds }: Phase) -> anyhow::Result<Stretch> {
        let wish = self.wish(step);
        self.note(&words(step, wish));
        let from = self.stage.now();
        let mut stretch =
            Stretch { step, from, until: from, wish, opening: None, named: None };
        match step {
            Step::Alone => self.stage.work(0..1)?,
            Step::Contention => self.stage.work(0..APPLICATIONS.len())?,
            Step::AloneAgain => {
                self.lift().await?;
                self.stage.work(0..1)?;
            }
            Step::Released | Step::Freed => self.lift().await?,
            Step::Schedule => {
                let open = (seconds - f64::from(BEFORE_OPENING)) / 2.0;
                stretch.opening = Some(self.schedule(wish, open.round() as u32).await?);
            }
            Step::Cruise(_) | Step::Limit(_) | Step::Unreachable => {
                self.lift().await?;
                self.ask(wish, None).await?;
            }
        }
        while stretch.until < from + seconds {
            stretch.until = self.stage.window().await?;
            self.screen.tick(stretch.until);
            let named = self.listen().await?;
            stretch.named = stretch.named.or(named);
            if step == Step::Unreachable && stretch.named.is_some() {
                break;
            }
        }
        let band = wish.map(|wish| band(wish, &stretch));
        self.outcome.record.bands.extend(band);
        Ok(stretch)
    }

    /// What a step asks for, after what the database got alone.
    fn wish(&self, step: Step) -> Option<Wish> {
        let alone = self.outcome.stretches.first()?;
        Wish::of(step, self.stage.oltp().between(alone.calm(), alone.until))
    }

    fn note(&mut self, text: &str) {
        let at = self.stage.now();
        self.screen.phase(at, text);
        self.outcome.record.marks.push(Mark { at, text: text.into() });
    }

    /// Puts a wish in force.
    async fn ask(
        &mut self,
        wish: Option<Wish>,
        schedule: Option<String>,
    ) -> anyhow::Result<Policy> {
        let wish = wish.context(
            "the database completed nothing while it was alone; check the daemon's disks",
        )?;
        let class = OLTP.into();
        let wanted = CreatePolicy { class, aim: wish.aim(), schedule, until_job: None };
        let policy = self.site.client().create_policy(&wanted).await?;
        (self.policy, self.said) = (Some(policy.id), CruisePhase::NotStarted);
        Ok(policy)
    }

    /// Puts a wish in force for so many seconds, a little later; gives when it is to
    /// begin and to end.
    async fn schedule(
        &mut self,
        wish: Option<Wish>,
        open: u32,
    ) -> anyhow::Result<(f64, f64)> {
        self.lift().await?;
        let clock = self.site.client().explain(OLTP).await?.local_time;
        let schedule = hours(&clock, BEFORE_OPENING, open)
            .with_context(|| format!("cannot read the daemon's time, `{clock}`"))?;
        let policy = self.ask(wish, Some(schedule)).await?;
        let opening = policy.until.context("the schedule does not open")?;
        // The wall clock's moment on the experiment's clock.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = self.stage.now() + opening as f64 - now.as_secs_f64();
        Ok((begin, begin + f64::from(open)))
    }

    /// Removes the policy in force, if there is one.
    async fn lift(&mut self) -> anyhow::Result<()> {
        if let Some(id) = self.policy.take() {
            self.site.client().remove_policy(id).await?;
        }
        Ok(())
    }

    /// Looks what the daemon says of the target; notes it if it is new. Gives what it
    /// says if it cannot be reached.
    async fn listen(&mut self) -> anyhow::Result<Option<Named>> {
        let Some(id) = self.policy else { return Ok(None) };
        let Some(state) = self.site.client().policy(id).await?.cruise else {
            return Ok(None);
        };
        let reason = state.reason.unwrap_or_default();
        if self.said != state.phase {
            self.said = state.phase;
            self.note(&said(state.phase, &reason));
        }
        let unreachable = state.phase == CruisePhase::Unreachable;
        Ok(unreachable.then(|| Named { at: self.stage.now(), reason }))
    }
}

/// What is said of a target, in words.
pub(super) fn said(phase: CruisePhase, reason: &str) -> String {
    match reason {
        "" => format!("the daemon says: {phase}"),
        reason => format!("the daemon says: {phase}: {reason}"),
    }
}

/// The step in words.
pub(super) fn words(step: Step, wish: Option<Wish>) -> String {
    let wish = wish.map(Wish::words).unwrap_or_default();
    match step {
        Step::Alone => "oltp alone".into(),
        Step::Contention => "backup and stress begin".into(),
        Step::Cruise(_) => format!("cruise control: {wish}"),
        Step::Released => "target lifted".into(),
        Step::Unreachable => format!("out of reach: {wish}"),
        Step::AloneAgain => "backup and stress end".into(),
        Step::Limit(_) => format!("limit: {wish}"),
        Step::Freed => "limit lifted".into(),
        Step::Schedule => format!("limit by schedule: {wish}"),
    }
}

/// What the charts show of a wish.
pub(super) fn band(wish: Wish, stretch: &Stretch) -> Band {
    let (from, until) = stretch.opening.unwrap_or((stretch.from, stretch.until));
    let target = wish.target();
    let (low, high) = match wish.is_limit {
        true => (0.0, wish.value),
        false => (target.low(), target.high()),
    };
    Band { metric: wish.metric, from, until, low, high }
}

/// A day, in seconds.
const DAY: u32 = 24 * 60 * 60;

/// A schedule that opens so many seconds after the daemon's local time (`Mon 22:00:17`)
/// and stays open so long.
pub(super) fn hours(local_time: &str, before: u32, open: u32) -> Option<String> {
    let clock = local_time.split_whitespace().last()?;
    let mut parts = clock.split(':').map(|part| part.parse::<u32>().ok());
    let (hour, minute) = (parts.next()??, parts.next()??);
    // Whole minutes are told without seconds.
    let second = parts.next().unwrap_or(Some(0))?;
    let now = hour * 3600 + minute * 60 + second;
    let clock = |moment: u32| {
        let moment = moment % DAY;
        format!("{:02}:{:02}:{:02}", moment / 3600, moment / 60 % 60, moment % 60)
    };
    Some(format!("{}-{}", clock(now + before), clock(now + before + open)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_opens_a_little_after_the_daemons_time() {
        let at = |time| hours(time, 4, 12);
        assert_eq!(at("Mon 22:00:17").unwrap(), "22:00:21-22:00:33");
        assert_eq!(at("Mon 22:00").unwrap(), "22:00:04-22:00:16");
        assert_eq!(at("Sun 23:59:50").unwrap(), "23:59:54-00:00:06");
        assert_eq!(at("Sun 23:59:58").unwrap(), "00:00:02-00:00:14");
        for wrong in ["", "Mon", "Mon 22", "Mon ab:cd"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
