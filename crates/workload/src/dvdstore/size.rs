//! How large a store is: one size in bytes, and what it means in rows.
//!
//! The published sizes are 10 MB, 1 GB and 100 GB. Any other is the nearest of them
//! in proportion: the one of 10 MB below 1 GB, and the one of 100 GB above. (So a
//! store just above 1 GB has fewer products than one of 1 GB. With its indexes a new
//! store takes about 1.5 times its size.)

use std::fmt;
use std::str::FromStr;

use sterna_core::Bytes;
use sterna_core::units::ParseUnitError;

/// Orders that are there from the beginning were made in so many months.
pub(crate) const MONTHS: u64 = 12;
/// Every so many products there is one that is in demand: it is bought, and stocked,
/// ten times as much.
pub(crate) const HOT_EVERY: u64 = 10_000;
/// The smallest size: below it, a month would have no orders worth the name.
const LEAST: u64 = 1 << 20;
/// The largest: customers are numbered with 31 bits, and new ones need numbers too.
const MOST: u64 = 1000 << 30;

const SMALL: u64 = 10 << 20;
const MEDIUM: u64 = 1 << 30;
const LARGE: u64 = 100 << 30;

/// A store's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(u64);

/// Why a text is no size.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    /// It cannot be read.
    #[error("small, medium, large, or {0}")]
    Text(#[from] ParseUnitError),
    /// There can be no such store.
    #[error("a store has 1 MiB to 1000 GiB, not {0}")]
    Range(Bytes),
}

impl Size {
    /// A store of so many bytes.
    pub fn new(bytes: u64) -> Result<Size, SizeError> {
        match bytes {
            LEAST..=MOST => Ok(Size(bytes)),
            _ => Err(SizeError::Range(Bytes(bytes))),
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// How many customers it has at first.
    pub fn customers(self) -> u64 {
        self.scaled(20_000, 2_000_000, 200_000_000)
    }

    /// How many orders were made in each of the [`MONTHS`].
    pub fn orders_per_month(self) -> u64 {
        self.scaled(1_000, 100_000, 10_000_000)
    }

    /// How many orders it has at first.
    pub fn orders(self) -> u64 {
        MONTHS * self.orders_per_month()
    }

    /// How many products it has.
    pub fn products(self) -> u64 {
        self.scaled(10_000, 100_000, 1_000_000)
    }

    /// Of how many products one is a special offer.
    pub(crate) fn special_every(self) -> u64 {
        if self.products() <= 100_000 { 100 } else { 10_000 }
    }

    fn scaled(self, small: u64, medium: u64, large: u64) -> u64 {
        let (rows, of) = match self.0 {
            0..MEDIUM => (small, SMALL),
            MEDIUM => (medium, MEDIUM),
            _ => (large, LARGE),
        };
        // At most 200 million times 2^40.
        (u128::from(rows) * u128::from(self.0) / u128::from(of)) as u64
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        match text {
            "small" => Ok(Size(SMALL)),
            "medium" => Ok(Size(MEDIUM)),
            "large" => Ok(Size(LARGE)),
            _ => Size::new(text.parse::<Bytes>()?.0),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SMALL => f.pad("small"),
            MEDIUM => f.pad("medium"),
            LARGE => f.pad("large"),
            bytes => Bytes(bytes).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> [u64; 3] {
        let size: Size = text.parse().expect("a size");
        [size.customers(), size.orders_per_month(), size.products()]
    }

    #[test]
    fn the_published_sizes_have_their_rows() {
        assert_eq!(rows("small"), [20_000, 1_000, 10_000]);
        assert_eq!(rows("medium"), [2_000_000, 100_000, 100_000]);
        assert_eq!(rows("large"), [200_000_000, 10_000_000, 1_000_000]);
    }

    #[test]
    fn other_sizes_are_in_proportion() {
        assert_eq!(rows("1M"), [2_000, 100, 1_000]);
        assert_eq!(rows("1G"), rows("medium"));
        assert_eq!(rows("500G"), [1_000_000_000, 50_000_000, 5_000_000]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "tiny", "10", "2T", "-1"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
