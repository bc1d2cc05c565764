//! Words for titles and names, made of syllables instead of lists.
//!
//! A title is two words of a thousand; all million pairs are different, and they come
//! in an order in which neighbours have nothing in common. An actor is one of 200
//! first names and one of 200 last names.

/// How many words titles are made of.
const WORDS: u64 = 1000;
/// How many first names there are, and how many last names.
const NAMES: u64 = 200;
/// Any number with no factor in common with the number of pairs makes a walk that
/// visits each of them once.
const STRIDE: u64 = 387_420_489;

const STARTS: [&str; 10] = ["BA", "CO", "DE", "FI", "GU", "LA", "MO", "NE", "PI", "RU"];
const MIDDLES: [&str; 10] = ["RA", "NO", "LE", "TI", "SU", "VA", "BO", "ME", "DI", "KU"];
const ENDS: [&str; 10] = ["N", "RT", "LL", "SS", "X", "TH", "ND", "RK", "M", "SH"];
const SURNAMES: [&str; 20] = [
    "SON", "TON", "FORD", "WELL", "LEY", "MAN", "BY", "STEIN", "WOOD", "FIELD", "BERG",
    "INGS", "HAM", "WICK", "STONE", "LAND", "HURST", "WORTH", "DALE", "BROOK",
];

/// A product's title.
pub(crate) fn title(product: u64) -> String {
    let pair = product % (WORDS * WORDS) * STRIDE % (WORDS * WORDS);
    format!("{} {}", word(pair / WORDS), word(pair % WORDS))
}

/// The name of an actor, by any number.
pub(crate) fn actor(number: u64) -> String {
    let (first, last) = (number % NAMES, number / NAMES % NAMES);
    format!("{} {}", first_name(first), last_name(last))
}

/// One of a thousand words.
fn word(number: u64) -> String {
    let digit = |of: u64| (number / of % 10) as usize;
    format!("{}{}{}", STARTS[digit(100)], MIDDLES[digit(10)], ENDS[digit(1)])
}

/// One of 200 first names.
pub(crate) fn first_name(number: u64) -> String {
    let end = if number < NAMES / 2 { "" } else { "N" };
    let digit = |of: u64| (number / of % 10) as usize;
    format!("{}{}{end}", STARTS[digit(10)], MIDDLES[digit(1)])
}

/// One of 200 last names.
pub(crate) fn last_name(number: u64) -> String {
    let (start, end) = (number % 10, number / 10 % 20);
    format!("{}{}", STARTS[start as usize], SURNAMES[end as usize])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_million_titles_are_all_different() {
        let titles: HashSet<String> = (0..WORDS * WORDS).map(title).collect();
        assert_eq!(titles.len(), 1_000_000);
    }

    #[test]
    fn there_are_forty_thousand_actors() {
        let actors: HashSet<String> = (0..NAMES * NAMES).map(actor).collect();
        assert_eq!(actors.len(), 40_000);
    }
}
