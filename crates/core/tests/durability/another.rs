//! A server that comes back: the same, without what was not flushed, in an older state, or
//! another one. The image reads and writes all the time, also while a new connection is
//! looked at.

use sterna_core::ByteRange;
use sterna_core::durability::{Content, Question, STRETCH, Standing, Witnesses};

use super::random::Random;

const STRETCHES: u64 = 200;

/// What each stretch of an export holds.
type Image = Vec<u64>;

fn content(holds: u64) -> Content {
    let mut bytes = vec![0; STRETCH as usize];
    bytes[..8].copy_from_slice(&holds.to_le_bytes());
    Content::of(&bytes)
}

struct World {
    random: Random,
    witnesses: Witnesses,
    durable: Image,
    cache: Image,
    /// States that were durable once.
    older: Vec<Image>,
    /// Writes that are under way, and the stretch that is being read.
    under_way: Vec<(u64, u64)>,
    looking: Option<u64>,
    /// The flush under way: what it makes durable, and which witnesses it covers.
    flush: Option<(Image, u64)>,
    /// Writes that the image knows to be unflushed; of these, some landed behind the flush.
    unflushed: bool,
    behind: bool,
    next: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        // Some disks are nearly empty.
        let full = random.below(100);
        let image: Image = (0..STRETCHES)
            .map(|at| if random.below(100) < full { at + (seed << 32) } else { 0 })
            .collect();
        World {
            witnesses: Witnesses::new(STRETCHES * STRETCH, seed),
            random,
            cache: image.clone(),
            durable: image,
            older: Vec::new(),
            under_way: Vec::new(),
            looking: None,
            flush: None,
            unflushed: false,
            behind: false,
            next: seed << 40,
        }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0 | 1 => {
                let at = self.random.below(STRETCHES);
                if self.under_way.iter().all(|(other, _)| *other != at) {
                    self.next += 1;
                    let holds = if self.random.one_in(8) { 0 } else { self.next };
                    self.under_way.push((at, holds));
                    self.witnesses.writes(ByteRange::new(at * STRETCH + 512, 512));
                }
            }
            2 | 3 if !self.under_way.is_empty() => {
                let at = self.random.below(self.under_way.len() as u64) as usize;
                let (at, holds) = self.under_way.swap_remove(at);
                self.cache[at as usize] = holds;
                (self.unflushed, self.behind) = (true, true);
            }
            4 if self.flush.is_none() => {
                self.flush = Some((self.cache.clone(), self.witnesses.flush_begins()));
                self.behind = false;
            }
            5 => {
                if let Some((image, covers)) = self.flush.take() {
                    self.witnesses.flushed(covers);
                    self.unflushed = self.behind;
                    self.older.push(std::mem::replace(&mut self.durable, image));
                }
            }
            6 | 7 if self.looking.is_none() => {
                let busy = self.under_way.clone();
                let is_busy = |range: ByteRange| {
                    busy.iter().any(|(at, _)| at * STRETCH == range.offset)
                };
                let range = self.witnesses.look(is_busy);
                self.looking = range.map(|range| range.offset / STRETCH);
            }
            _ => {
                if let Some(at) = self.looking.take() {
                    let mut bytes = vec![0; STRETCH as usize];
                    let holds = self.cache[at as usize];
                    bytes[..8].copy_from_slice(&holds.to_le_bytes());
                    self.witnesses.saw(&bytes, !self.unflushed);
                }
            }
        }
    }

    /// The server is back with `image`, and writes go on while it is looked at if another
    /// connection is up.
    fn comes_back(&mut self, image: &Image, meanwhile: bool) -> Standing {
        let questions = self.witnesses.questions();
        let read = |it: Question| content(image[(it.range.offset / STRETCH) as usize]);
        let answers: Vec<_> = questions.into_iter().map(|it| (it, read(it))).collect();
        for _ in 0..if meanwhile { 20 } else { 0 } {
            self.step();
        }
        self.witnesses.judge(&answers)
    }

    /// All connections are lost; the server has forgotten some of what was not flushed.
    fn goes(&mut self) {
        self.witnesses.lost();
        (self.looking, self.flush, self.unflushed) = (None, None, false);
        for at in 0..STRETCHES as usize {
            if self.random.one_in(2) {
                self.durable[at] = self.cache[at];
            }
        }
        // What was under way is sent again, and lands sooner or later.
        self.cache = self.durable.clone();
    }
}

#[test]
fn a_server_is_what_it_was_or_is_found_out() {
    let (mut others, mut older) = (0, 0);
    for seed in 0..300 {
        let mut world = World::new(seed);
        for round in 0..20 {
            for _ in 0..world.random.below(400) {
                world.step();
            }
            // One connection of several; the server has forgotten nothing.
            world.witnesses.lost();
            (world.looking, world.unflushed) = (None, false);
            let seen = world.cache.clone();
            let standing = world.comes_back(&seen, true);
            assert_eq!(standing, Standing::Same, "seed {seed}, round {round}");
            world.goes();
            let image = world.durable.clone();
            let another: Image = image.iter().map(|_| world.random.next()).collect();
            let read = world.witnesses.questions().len();
            let standing = world.comes_back(&another, false);
            match read {
                0 => assert_eq!(standing, Standing::Same, "nothing is known"),
                _ => assert_eq!(standing, Standing::Another { read }),
            }
            others += usize::from(read > 0);
            let standing = world.comes_back(&image, false);
            assert_eq!(standing, Standing::Same, "seed {seed}, round {round}");
            if let Some(state) = world.older.pop().filter(|_| round % 4 == 3) {
                let standing = world.comes_back(&state, false);
                older += usize::from(standing == Standing::Older);
                if standing != Standing::Same {
                    // Taken or not, the disk is as it is there.
                    world = World { witnesses: Witnesses::new(0, 0), ..world };
                    world.witnesses = Witnesses::new(STRETCHES * STRETCH, seed);
                }
                (world.cache, world.durable) = (state.clone(), state);
                world.under_way.clear();
            }
        }
    }
    assert!(others > 1000 && older > 50, "{others} {older}");
}
