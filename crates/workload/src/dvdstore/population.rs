//! Who and what is in a store from the beginning.
//!
//! Every row follows from the store's seed, its table and its number alone. So rows
//! can be made in any order, by as many loaders as there are, and twice the same; and
//! whoever shops can look for titles and actors that are there.
//!
//! Each customer has the name `userN` and the password `password`. Orders have the
//! first and later numbers, in the order of their months.

use super::names;
use super::size::{HOT_EVERY, Size};
use crate::random::{Random, scatter};

/// Everybody's password.
pub(crate) const PASSWORD: &str = "password";
/// What products are sorted into.
pub(crate) const CATEGORIES: [&str; 16] = [
    "Action",
    "Animation",
    "Children",
    "Classics",
    "Comedy",
    "Documentary",
    "Drama",
    "Family",
    "Foreign",
    "Games",
    "Horror",
    "Music",
    "New",
    "Sci-Fi",
    "Sports",
    "Travel",
];
/// The most lines of an order that was made before the store opened.
const LINES_MOST: u64 = 9;
/// The most copies of a product in one line.
pub(crate) const QUANTITY_MOST: u64 = 3;
/// The most that an order costs before tax, in cents.
const NET_MOST: u64 = 40_000;
/// The most of a product that is in stock at first; ten times as many of one that is
/// in demand.
const STOCK_MOST: u64 = 500;
/// Days of a month that orders are made on: each month has them.
const DAYS: u64 = 28;

const STATES: [&str; 51] = [
    "AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "GA", "HI", "IA", "ID",
    "IL", "IN", "KS", "KY", "LA", "MA", "MD", "ME", "MI", "MN", "MO", "MS", "MT", "NC",
    "ND", "NE", "NH", "NJ", "NM", "NV", "NY", "OH", "OK", "OR", "PA", "RI", "SC", "SD",
    "TN", "TX", "UT", "VA", "VT", "WA", "WI", "WV", "WY",
];
const COUNTRIES: [&str; 10] = [
    "Australia",
    "Canada",
    "Chile",
    "China",
    "France",
    "Germany",
    "Japan",
    "Russia",
    "South Africa",
    "UK",
];

/// The store's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Population {
    pub(crate) size: Size,
    pub(crate) seed: u64,
}

/// A customer, without number and name to log in with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) address: String,
    pub(crate) city: String,
    /// Empty outside the United States.
    pub(crate) state: &'static str,
    pub(crate) zip: i32,
    pub(crate) country: &'static str,
    /// 1 in the United States, else 2.
    pub(crate) region: i16,
    pub(crate) email: String,
    pub(crate) phone: String,
    pub(crate) card_type: i16,
    pub(crate) card: String,
    pub(crate) expires: String,
    pub(crate) age: i16,
    pub(crate) income: i32,
    pub(crate) gender: &'static str,
}

/// A product and how much of it there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    /// From 1.
    pub(crate) category: u64,
    pub(crate) title: String,
    pub(crate) actor: String,
    /// The price less 99 cents.
    pub(crate) dollars: u64,
    pub(crate) special: bool,
    /// What people who bought it often bought too.
    pub(crate) common: u64,
    pub(crate) stock: u64,
}

/// Some copies of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The product.
    pub product: u64,
    /// How many.
    pub quantity: u64,
}

/// What an order costs, in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Before tax.
    pub net: u64,
    /// The tax.
    pub tax: u64,
}

/// An order that was made before the store opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// From 1.
    pub(crate) month: u64,
    /// From 1.
    pub(crate) day: u64,
    pub(crate) customer: u64,
    pub(crate) cost: Cost,
    pub(crate) lines: Vec<Line>,
}

impl Cost {
    /// The cost of any order: uniform, with a tax of 8.25 %.
    pub(crate) fn any(random: &mut Random) -> Cost {
        let net = 1 + random.below(NET_MOST);
        Cost { net, tax: (net * 825 + 5_000) / 10_000 }
    }

    /// With tax.
    pub fn total(self) -> u64 {
        self.net + self.tax
    }
}

impl Person {
    /// Somebody, in the United States or abroad.
    pub(crate) fn any(random: &mut Random, abroad: bool) -> Person {
        let mut of = |bound: u64| random.below(bound);
        let first_name = names::first_name(of(200));
        let last_name = names::last_name(of(200));
        let (state, country) = match abroad {
            false => (STATES[of(STATES.len() as u64) as usize], "US"),
            true => ("", COUNTRIES[of(COUNTRIES.len() as u64) as usize]),
        };
        let email = format!("{first_name}.{last_name}@example.com").to_lowercase();
        Person {
            address: format!("{} {} street", 1 + of(9999), names::last_name(of(200))),
            city: names::last_name(of(200)),
            state,
            zip: if abroad { 0 } else { 10_000 + of(90_000) as i32 },
            country,
            region: if abroad { 2 } else { 1 },
            email,
            phone: format!("{:010}", of(10_000_000_000)),
            card_type: 1 + of(5) as i16,
            card: format!("{:016}", of(10_000_000_000_000_000)),
            expires: format!("{}/{:02}", 2027 + of(5), 1 + of(12)),
            age: 18 + of(73) as i16,
            income: 20_000 * (1 + of(5) as i32),
            gender: if of(2) == 0 { "F" } else { "M" },
            first_name,
            last_name,
        }
    }
}

impl Population {
    /// The customer with this number, from 1.
    pub(crate) fn customer(self, number: u64) -> Person {
        let abroad = number > self.size.customers() / 2;
        Person::any(&mut self.random(1, number), abroad)
    }

    /// The product with this number, from 1.
    pub(crate) fn product(self, number: u64) -> Product {
        let mut random = self.random(2, number);
        let more = if is_hot(number) { 10 } else { 1 };
        Product {
            category: 1 + random.below(CATEGORIES.len() as u64),
            title: names::title(number),
            actor: names::actor(random.bits() >> 32),
            dollars: 9 + random.below(21),
            special: random.below(self.size.special_every()) == 0,
            common: 1 + random.below(self.size.products()),
            stock: more * random.below(STOCK_MOST + 1),
        }
    }

    /// The order with this number, from 1.
    pub(crate) fn order(self, number: u64) -> Order {
        let mut random = self.random(3, number);
        let customer = 1 + random.below(self.size.customers());
        let day = 1 + random.below(DAYS);
        let cost = Cost::any(&mut random);
        let count = 1 + random.below(LINES_MOST);
        let lines = (0..count).map(|_| Line {
            product: 1 + random.below(self.size.products()),
            quantity: 1 + random.below(QUANTITY_MOST),
        });
        let month = 1 + (number - 1) / self.size.orders_per_month();
        Order { month, day, customer, cost, lines: lines.collect() }
    }

    fn random(self, table: u64, number: u64) -> Random {
        Random::new(scatter(self.seed) ^ scatter(table << 56 | number))
    }
}

/// Whether a product is in demand.
pub(crate) fn is_hot(product: u64) -> bool {
    product.is_multiple_of(HOT_EVERY)
}

/// What a customer with this number logs in with.
pub(crate) fn username(customer: u64) -> String {
    format!("user{customer}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Population {
        Population { size: "small".parse().expect("a size"), seed: 7 }
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_and_another_seed_others() {
        let other = Population { seed: 8, ..small() };
        assert_eq!(small().customer(4711), small().customer(4711));
        assert_ne!(small().customer(4711), other.customer(4711));
        assert_eq!(small().order(99), small().order(99));
        assert_ne!(small().order(99), small().order(100));
    }

    #[test]
    fn one_half_of_the_customers_lives_in_the_united_states() {
        assert_eq!(small().customer(10_000).country, "US");
        let abroad = small().customer(10_001);
        assert_eq!((abroad.region, abroad.zip), (2, 0));
        assert!((1..=1000).all(|one| (18..=90).contains(&small().customer(one).age)));
    }

    #[test]
    fn orders_have_five_lines_on_average_and_fill_twelve_months() {
        let orders: Vec<Order> = (1..=12_000).map(|one| small().order(one)).collect();
        let lines: usize = orders.iter().map(|order| order.lines.len()).sum();
        let mean = lines as f64 / orders.len() as f64;
        assert!((4.9..5.1).contains(&mean), "{mean}");
        assert_eq!((orders[0].month, orders[11_999].month), (1, 12));
        assert!(orders.iter().all(|order| (1..=40_000).contains(&order.cost.net)));
    }

    #[test]
    fn tax_is_a_twelfth_and_a_bit_to_the_cent() {
        assert_eq!(Cost { net: 10_000, tax: 825 }.total(), 10_825);
        let cost = Cost::any(&mut Random::new(1));
        assert_eq!(cost.tax, (cost.net as f64 * 0.0825).round() as u64);
    }

    #[test]
    fn products_in_demand_are_stocked_ten_times_as_much() {
        let stock = |number| small().product(number).stock;
        assert!((1..=9_999).all(|number| stock(number) <= 500));
        assert!(stock(10_000).is_multiple_of(10));
        let specials = (1..=10_000).filter(|one| small().product(*one).special).count();
        assert!((60..140).contains(&specials), "{specials} specials");
    }
}
