//! What somebody who comes to the store does.
//!
//! Pure: all chance comes from the seed. A visit is a login (or, one time in five, a
//! new customer), some searches, and a purchase; how long somebody thinks before the
//! next one has a mean and a distribution. Whoever carries visits out has the clock
//! and the server.
//!
//! Each question is put to chance separately: whether somebody is new says nothing of
//! what they buy. The products of a cart are in ascending order, so that two purchases
//! never wait for each other in a circle.

use std::time::Duration;

use super::population::{
    CATEGORIES, Cost, Line, PASSWORD, Person, Population, QUANTITY_MOST,
};
use super::server::Store;
use super::size::HOT_EVERY;
use crate::random::{Random, scatter};

/// How many visitors in a hundred are new.
const NEW_PERCENT: u32 = 20;
/// Searches before a purchase, on average.
const SEARCHES_MEAN: u64 = 3;
/// The most that a search finds, on average.
const BATCH_MEAN: u64 = 5;
/// Lines of a purchase, on average.
const LINES_MEAN: u64 = 5;
/// How much oftener a product in demand is bought than another.
const DEMAND: u64 = 10;

/// How somebody comes in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// A customer that was there from the beginning.
    Login(u64),
    /// Somebody new.
    New(Box<Person>),
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Special offers of a category, from 1.
    Category(i16),
    /// A word of a title.
    Title(String),
    /// An actor's name.
    Actor(String),
}

/// A visit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Visit {
    pub(crate) entry: Entry,
    /// Each with the most that it finds.
    pub(crate) searches: Vec<(Search, i64)>,
    pub(crate) cart: Vec<Line>,
    pub(crate) cost: Cost,
}

/// Somebody who visits again and again.
#[derive(Clone, Debug)]
pub(crate) struct Shopper {
    all: Population,
    random: Random,
}

impl Shopper {
    /// The `number`th user of a run with this seed.
    pub(crate) fn new(store: Store, seed: u64, number: u64) -> Shopper {
        let all = Population { size: store.size, seed: store.seed };
        Shopper { all, random: Random::new(scatter(seed) ^ scatter(!number)) }
    }

    /// What is done next.
    pub(crate) fn visit(&mut self) -> Visit {
        let entry = match self.random.percent(NEW_PERCENT) {
            true => Entry::New(Box::new(self.person())),
            false => Entry::Login(1 + self.random.below(self.all.size.customers())),
        };
        let searches = self.about(SEARCHES_MEAN);
        Visit {
            entry,
            searches: (0..searches).map(|_| self.search()).collect(),
            cart: self.cart(),
            cost: Cost::any(&mut self.random),
        }
    }

    /// How long is thought after a purchase: anything up to twice the mean.
    pub(crate) fn think(&mut self, mean: Duration) -> Duration {
        let part = self.random.below(1 << 32) as f64 / f64::from(u32::MAX);
        (2 * mean).mul_f64(part)
    }

    /// A name to log in with that is hardly taken.
    pub(crate) fn username(&mut self) -> String {
        format!("new{}", self.random.below(1 << 48))
    }

    /// What whoever is new logs in with later.
    pub(crate) fn password(&self) -> &'static str {
        PASSWORD
    }

    fn person(&mut self) -> Person {
        let abroad = self.random.percent(50);
        Person::any(&mut self.random, abroad)
    }

    /// From 1 to one less than twice the mean.
    fn about(&mut self, mean: u64) -> u64 {
        1 + self.random.below(2 * mean - 1)
    }

    /// What is looked for is there: it is taken from a product.
    fn search(&mut self) -> (Search, i64) {
        let product = 1 + self.random.below(self.all.size.products());
        let search = match self.random.below(3) {
            0 => {
                let category = 1 + self.random.below(CATEGORIES.len() as u64);
                Search::Category(category as i16)
            }
            1 => {
                let title = self.all.product(product).title;
                let word = title.split(' ').next().unwrap_or_default();
                Search::Title(word.to_owned())
            }
            _ => Search::Actor(self.all.product(product).actor),
        };
        (search, self.about(BATCH_MEAN).cast_signed())
    }

    fn cart(&mut self) -> Vec<Line> {
        let lines = self.about(LINES_MEAN);
        let mut cart: Vec<Line> = (0..lines)
            .map(|_| Line {
                product: self.product(),
                quantity: 1 + self.random.below(QUANTITY_MOST),
            })
            .collect();
        cart.sort_by_key(|line| line.product);
        cart
    }

    /// A product; each that is in demand counts as ten.
    fn product(&mut self) -> u64 {
        let products = self.all.size.products();
        let more = DEMAND - 1;
        let drawn = self.random.below(products + more * (products / HOT_EVERY));
        match drawn.checked_sub(products) {
            None => drawn + 1,
            Some(beyond) => (beyond / more + 1) * HOT_EVERY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::population::is_hot;
    use super::*;

    fn shopper(seed: u64) -> Shopper {
        let size = "small".parse().expect("a size");
        Shopper::new(Store { size, seed: 1 }, seed, 0)
    }

    fn visits(seed: u64) -> Vec<Visit> {
        let mut shopper = shopper(seed);
        (0..10_000).map(|_| shopper.visit()).collect()
    }

    #[track_caller]
    fn about(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.05, "{found}, not {expected}");
    }

    #[test]
    fn the_same_seed_makes_the_same_visits() {
        assert_eq!(visits(1), visits(1));
        assert_ne!(visits(1)[..10], visits(2)[..10]);
    }

    #[test]
    fn two_users_do_not_do_the_same() {
        let store = Store { size: "small".parse().expect("a size"), seed: 1 };
        let (mut a, mut b) = (Shopper::new(store, 1, 0), Shopper::new(store, 1, 1));
        assert_ne!(a.visit(), b.visit());
    }

    #[test]
    fn visits_are_as_published() {
        let visits = visits(3);
        let count = visits.len() as f64;
        let mean =
            |of: &dyn Fn(&Visit) -> f64| visits.iter().map(of).sum::<f64>() / count;
        about(mean(&|visit| f64::from(matches!(visit.entry, Entry::New(_)))), 0.2);
        about(mean(&|visit| visit.searches.len() as f64), 3.0);
        about(mean(&|visit| visit.cart.len() as f64), 5.0);
        let quantity = |visit: &Visit| visit.cart[0].quantity as f64;
        about(mean(&quantity), 2.0);
        for visit in &visits {
            assert!((1..=5).contains(&visit.searches.len()));
            assert!((1..=9).contains(&visit.cart.len()));
            assert!(visit.searches.iter().all(|(_, most)| (1..=9).contains(most)));
            assert!(visit.cart.is_sorted_by_key(|line| line.product));
        }
    }

    #[test]
    fn the_three_searches_are_as_frequent() {
        let mut counts = [0.0; 3];
        for (search, _) in visits(4).iter().flat_map(|visit| &visit.searches) {
            counts[match search {
                Search::Category(_) => 0,
                Search::Title(_) => 1,
                Search::Actor(_) => 2,
            }] += 1.0;
        }
        for count in counts {
            about(count, 10_000.0);
        }
    }

    #[test]
    fn what_is_in_demand_is_bought_ten_times_as_often() {
        let size = "20M".parse().expect("a size");
        let mut shopper = Shopper::new(Store { size, seed: 1 }, 5, 0);
        // 20,000 products, and two that count as ten.
        let drawn = 2_000_000;
        let hot = (0..drawn).filter(|_| is_hot(shopper.product())).count();
        about(hot as f64, f64::from(drawn) * 20.0 / 20_018.0);
        assert!((0..drawn).all(|_| (1..=20_000).contains(&shopper.product())));
    }

    #[test]
    fn thinking_takes_as_long_as_asked_on_average() {
        let mut shopper = shopper(6);
        let mean = Duration::from_secs(2);
        let times: Vec<f64> =
            (0..10_000).map(|_| shopper.think(mean).as_secs_f64()).collect();
        about(times.iter().sum::<f64>() / 10_000.0, 2.0);
        assert!(times.iter().all(|time| (0.0..=4.0).contains(time)));
        assert_eq!(shopper.think(Duration::ZERO), Duration::ZERO);
    }
}
