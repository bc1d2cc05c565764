//! Where on the disk something was found: as much as a sentence can name, and as much as
//! a list may hold.

use std::fmt;

use crate::ByteRange;

/// Places that a sentence names: it has to fit a few lines of a terminal.
const NAMED_MAX: usize = 4;

/// Places in a list at most, the first ones; the others are only counted. A list goes to
/// the state database and through the API, each time that somebody looks.
pub const LISTED_MAX: usize = 1024;

/// Places in brief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// How many there are; neighbours are one.
    pub count: u64,
    /// Bytes in them, all in all.
    pub bytes: u64,
    /// Where the first ones begin.
    first: [u64; NAMED_MAX],
}

impl Places {
    fn named(&self) -> &[u64] {
        &self.first[..self.count.min(NAMED_MAX as u64) as usize]
    }
}

/// `1024 bytes in 2 places, at the bytes 5000192, 9000448`
impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{} bytes, at the byte {}", self.bytes, self.first[0])?,
            count => {
                write!(f, "{} bytes in {count} places, at the bytes ", self.bytes)?;
                for (at, offset) in self.named().iter().enumerate() {
                    write!(f, "{}{offset}", if at == 0 { "" } else { ", " })?;
                }
            }
        }
        match self.count.saturating_sub(NAMED_MAX as u64) {
            0 => Ok(()),
            _ => f.write_str(" and so on"),
        }
    }
}

/// Places, listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// All of them in brief.
    pub places: Places,
    /// The first [`LISTED_MAX`], in order.
    pub ranges: Vec<ByteRange>,
}

impl Listed {
    /// Lists ranges that come in order; neighbours become one.
    pub(super) fn of(ranges: impl IntoIterator<Item = ByteRange>) -> Listed {
        let mut listed = Listed::default();
        let mut end = None;
        for range in ranges {
            let Listed { places, ranges } = &mut listed;
            places.bytes += range.len;
            if end == Some(range.offset) {
                if places.count as usize == ranges.len()
                    && let Some(last) = ranges.last_mut()
                {
                    last.len += range.len;
                }
            } else {
                if let Some(first) = places.first.get_mut(places.count as usize) {
                    *first = range.offset;
                }
                places.count += 1;
                if ranges.len() < LISTED_MAX {
                    ranges.push(range);
                }
            }
            end = Some(range.end());
        }
        listed
    }
}

/// What was found out about the two images that somebody should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Sectors of the source that cannot be read.
    pub bad: Listed,
    /// What goes on to read differently on the destination.
    pub differing: Listed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(offsets: impl IntoIterator<Item = u64>) -> Listed {
        Listed::of(offsets.into_iter().map(|offset| ByteRange::new(offset, 512)))
    }

    #[test]
    fn a_sentence_names_the_first_places_and_how_much_it_is() {
        let said = |offsets: &[u64]| listed(offsets.iter().copied()).places.to_string();
        assert_eq!(said(&[5_000_192]), "512 bytes, at the byte 5000192");
        assert_eq!(said(&[512, 1024]), "1024 bytes, at the byte 512", "neighbours");
        assert_eq!(said(&[0, 4096]), "1024 bytes in 2 places, at the bytes 0, 4096");
        let many = said(&[0, 1024, 2048, 3072, 4096]);
        assert_eq!(
            many,
            "2560 bytes in 5 places, at the bytes 0, 1024, 2048, 3072 and so on"
        );
    }

    #[test]
    fn a_list_is_bounded_and_the_rest_is_counted() {
        let listed = listed((0..3000).map(|at| at * 1024));
        assert_eq!(listed.ranges.len(), LISTED_MAX);
        assert_eq!((listed.places.count, listed.places.bytes), (3000, 3000 * 512));
    }
}
