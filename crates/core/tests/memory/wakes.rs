//! Wakes, in a world of devices that are slow, fail or hang, QEMUs that refuse, and people who
//! end them at any moment.

use std::collections::{BTreeSet, HashMap, VecDeque};

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::memory::{
    Action, Event, HOLD_MOST, Heat, OutGranule, Outcome, Phase, Setup, Stream, TierSpeed,
    WITHIN, Wake,
};

const DISK: TierSpeed =
    TierSpeed { access: Nanos::from_micros(13_200), sequential: 80e6 };
const FLASH: TierSpeed = TierSpeed { access: Nanos::from_micros(400), sequential: 250e6 };
const TICK: Nanos = Nanos::from_millis(2);

/// A fault waits for a quarter of a second at most: so many granules of the disk.
const OUTSTANDING_MOST: usize = 305;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// QEMU does not hold the guest.
    refuses_hold: bool,
    /// QEMU takes so long for an answer.
    answers_after: u64,
    /// Each granule whose number this divides cannot be read.
    unreadable: Option<u32>,
    /// A device answers nothing any more after so many granules.
    hangs_after: Option<u32>,
    /// Somebody ends the wake after so many milliseconds.
    ends_after: Option<u64>,
    /// The guest has faults as long as not all is back.
    faults: bool,
}

/// A wake in its world.
struct World {
    wake: Wake,
    now: Nanos,
    faults: Faults,
    /// What devices have to answer, with when: one queue of each.
    devices: HashMap<u8, VecDeque<(Nanos, Nanos, u32)>>,
    /// What QEMU and the kernel's table have to answer.
    answers: VecDeque<(Nanos, Event)>,
    asked: BTreeSet<u32>,
    stands: bool,
    stood: Nanos,
    let_go: u32,
    notes: Vec<(usize, Nanos)>,
    over: bool,
}

impl World {
    fn new(streams: Vec<(Stream, TierSpeed)>, hold: Nanos, faults: Faults) -> World {
        World {
            wake: Wake::new(Setup { streams, hold, processors: 2 }),
            now: Nanos(0),
            faults,
            devices: HashMap::new(),
            answers: VecDeque::new(),
            asked: BTreeSet::new(),
            stands: false,
            stood: Nanos(0),
            let_go: 0,
            notes: Vec::new(),
            over: false,
        }
    }

    /// Runs until the wake is over, or for so long.
    fn run(&mut self, most: Nanos) -> Outcome {
        self.tell(Event::Start);
        let ends = self.faults.ends_after.map(Nanos::from_millis);
        while !self.over && self.now < most {
            self.now = self.now.plus(TICK);
            if self.stands {
                self.stood = self.stood.plus(TICK);
            }
            self.answer();
            let faults = u64::from(self.faults.faults && self.wake.left() > 0);
            self.tell(Event::Faults(faults));
            self.tell(Event::Tick);
            if ends.is_some_and(|ends| self.now >= ends) {
                self.tell(Event::Stop);
            }
        }
        self.wake.outcome()
    }

    fn answer(&mut self) {
        while let Some((at, event)) = self.answers.front().copied()
            && at <= self.now
        {
            self.answers.pop_front();
            match event {
                Event::Held(ok) => self.stands = ok,
                Event::LetGo => self.stands = false,
                _ => {}
            }
            self.tell(event);
        }
        let devices: Vec<u8> = self.devices.keys().copied().collect();
        for device in devices {
            while let Some((asked, at, granule)) = self.devices[&device].front().copied()
                && at <= self.now
            {
                self.devices.get_mut(&device).expect("it is there").pop_front();
                let ok = self.faults.unreadable.is_none_or(|each| granule % each != 0);
                self.tell(Event::Fetched { device, took: at.since(asked), ok });
            }
        }
    }

    fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.wake.handle(self.now, event, &mut actions);
        assert!(!self.over || actions.is_empty(), "after the end: {actions:?}");
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        assert!(!self.over, "it was over before {action:?}");
        let soon = self.now.plus(Nanos::from_millis(self.faults.answers_after));
        match action {
            Action::Hold => {
                self.answers.push_back((soon, Event::Held(!self.faults.refuses_hold)));
            }
            Action::LetGo => {
                self.let_go += 1;
                self.answers.push_back((soon, Event::LetGo));
            }
            Action::Fetch { device, granule } => self.fetch(device, granule),
            Action::Note(at) => {
                self.notes.push((at, self.now));
                self.answers.push_back((soon, Event::Noted(true)));
            }
            Action::Over => self.over = true,
        }
    }

    fn fetch(&mut self, device: u8, granule: u32) {
        assert!(self.asked.insert(granule), "granule {granule} is asked for twice");
        let queue = self.devices.entry(device).or_default();
        let takes = Nanos::from_micros(if device == 0 { 800 } else { 260 });
        let free = queue.back().map_or(self.now, |(_, at, _)| *at).max(self.now);
        let hangs = self.faults.hangs_after.is_some_and(|after| granule >= after);
        let at = if hangs { Nanos(u64::MAX) } else { free.plus(takes) };
        queue.push_back((self.now, at, granule));
        assert!(queue.len() <= OUTSTANDING_MOST);
    }
}

/// A disk and a flash device, with so many granules each, of which so many are hot.
fn streams(disk: u32, flash: u32, hot: u32) -> Vec<(Stream, TierSpeed)> {
    let of = |device: u8, first: u32, count: u32| {
        let one = |at: u32| {
            let heat = if at < hot { Heat::Hot } else { Heat::Cold };
            let slot = u64::from(at) * 16;
            (heat, OutGranule { granule: first + at, device, slot, pages: 16 })
        };
        Stream { device, granules: (0..count).map(one).collect() }
    };
    let all = [(of(0, 0, disk), DISK), (of(1, disk, flash), FLASH)];
    all.into_iter().filter(|(stream, _)| !stream.granules.is_empty()).collect()
}

fn any_faults() -> impl Strategy<Value = Faults> {
    let some = |most: u64| proptest::option::weighted(0.3, 0..most);
    (any::<bool>(), 0..300_u64, some(9), some(500), some(70_000), any::<bool>()).prop_map(
        |(refuses_hold, answers_after, unreadable, hangs_after, ends_after, faults)| {
            Faults {
                refuses_hold,
                answers_after,
                unreadable: unreadable.map(|each| each as u32 + 1),
                hangs_after: hangs_after.map(|after| after as u32),
                ends_after,
                faults,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_guest_is_let_go_in_time_and_no_granule_is_asked_for_twice(
        disk in 0..400_u32,
        flash in 0..400_u32,
        hot in 0..200_u32,
        hold in 0..2_500_u64,
        faults in any_faults(),
    ) {
        let hold = Nanos::from_millis(hold);
        let mut world = World::new(streams(disk, flash, hot), hold, faults);
        let outcome = world.run(Nanos::from_secs(100));
        // What was asked of QEMU before the end comes after it.
        world.now = Nanos::from_secs(200);
        world.answer();
        prop_assert!(!world.stands, "the guest stands");
        prop_assert!(world.let_go <= 1, "it was let go {} times", world.let_go);
        let answer = Nanos::from_millis(faults.answers_after).plus(TICK).plus(TICK);
        prop_assert!(world.stood <= hold.plus(answer), "it stood for {}", world.stood);
        prop_assert!(world.notes.is_sorted_by_key(|(at, _)| *at));
        if faults.hangs_after.is_none() && faults.ends_after.is_none() {
            prop_assert!(world.over, "it does not end: {:?}", world.wake);
            prop_assert_eq!(outcome.fetched + outcome.failed, disk + flash);
            prop_assert_eq!(world.asked.len() as u32, disk + flash);
            prop_assert_eq!(world.wake.phase(), Phase::Awake);
            prop_assert_eq!(world.notes.len(), WITHIN.len());
            prop_assert_eq!(outcome.noted as usize, WITHIN.len());
            prop_assert!(outcome.hot <= outcome.all);
        }
        if faults.ends_after.is_some() {
            prop_assert!(world.over);
        }
    }
}

#[test]
fn a_guest_whose_hot_part_is_on_a_disk_is_held_until_it_is_back() {
    let mut world = World::new(streams(2_000, 0, 600), HOLD_MOST, Faults::default());
    let outcome = world.run(Nanos::from_secs(100));
    let hot = outcome.hot.expect("it is back");
    assert!(outcome.held <= hot.plus(TICK).plus(TICK) && outcome.held.plus(TICK) >= hot);
    assert!(hot < Nanos::from_millis(700), "600 granules take 480 ms: {hot}");
}

#[test]
fn nobody_is_held_for_flash_or_if_nothing_is_known_to_be_hot_or_if_it_is_forbidden() {
    for (streams, hold) in [
        (streams(0, 2_000, 600), HOLD_MOST),
        (streams(2_000, 0, 0), HOLD_MOST),
        (streams(2_000, 0, 600), Nanos(0)),
    ] {
        let mut world = World::new(streams, hold, Faults::default());
        let outcome = world.run(Nanos::from_secs(100));
        assert_eq!((outcome.held, world.let_go), (Nanos(0), 0));
        assert!(outcome.all.is_some());
    }
}

#[test]
fn a_guest_is_let_go_at_the_bound_if_the_device_hangs() {
    let faults = Faults { hangs_after: Some(100), ..Faults::default() };
    let mut world = World::new(streams(2_000, 0, 600), HOLD_MOST, faults);
    let outcome = world.run(Nanos::from_secs(30));
    assert!(!world.stands && world.let_go == 1 && !world.over);
    assert!(outcome.held <= HOLD_MOST.plus(TICK).plus(TICK), "{}", outcome.held);
    assert_eq!((outcome.hot, outcome.fetched), (None, 100));
}

#[test]
fn what_the_guest_uses_is_noted_from_when_it_runs() {
    let mut world = World::new(streams(2_000, 0, 600), HOLD_MOST, Faults::default());
    let held = world.run(Nanos::from_secs(100)).held;
    for ((at, when), within) in world.notes.iter().zip(WITHIN) {
        let due = held.plus(within);
        assert!(
            *when >= due && *when <= due.plus(TICK).plus(TICK),
            "{at}: {when}, not {due}"
        );
    }
}

#[test]
fn beside_a_guest_with_faults_a_slow_device_gets_little_at_a_time() {
    let faulting = Faults { faults: true, ..Faults::default() };
    let ends = |faults| {
        let mut world = World::new(streams(4_000, 0, 0), Nanos(0), faults);
        world.run(Nanos::from_secs(100)).all.expect("it ends")
    };
    // The device takes as long either way; only a guest that waits for nothing leaves it all.
    assert!(ends(Faults::default()) <= ends(faulting));
}
