//! The numbers of a text, and the ranges that they are held to.

use sterna_core::{Bytes, Nanos};
use toml::Spanned;

use super::{As, Result, ScenarioError, Span};

/// Things of one kind in a scenario at most, other than machines: each pair of a profile
/// and a datastore is looked at, and each pair of a host and a failure.
pub(crate) const THINGS_MAX: u32 = 1000;

/// Slowest and fastest link and size, in bytes (per second).
pub(crate) const RATE: (u64, u64) = (4 << 10, 1 << 40);
pub(crate) const SIZE: (u64, u64) = (1 << 20, 64 << 40);

/// The numbers of a text, with their bounds.
pub(crate) struct Numbers<'t>(pub(crate) &'t str);

impl Numbers<'_> {
    pub(crate) fn refuse<T, N>(&self, at: &Spanned<N>, what: String) -> Result<T> {
        Err(ScenarioError::at(self.0, at.span().start, what))
    }

    /// Not too many of a kind.
    pub(crate) fn few<'n>(
        &self,
        mut names: impl Iterator<Item = &'n Spanned<String>>,
    ) -> Result<()> {
        match names.nth(THINGS_MAX as usize) {
            Some(it) => self.refuse(it, format!("{THINGS_MAX} of a kind are the most")),
            None => Ok(()),
        }
    }

    pub(crate) fn count(
        &self,
        number: Option<&Spanned<u32>>,
        most: u32,
        usual: u32,
    ) -> Result<u32> {
        match number {
            None => Ok(usual),
            Some(it) if (1..=most).contains(it.get_ref()) => Ok(*it.get_ref()),
            Some(it) => self.refuse(it, format!("write a number from 1 to {most}")),
        }
    }

    /// A percentage as a part of one.
    pub(crate) fn part(&self, number: Option<&Spanned<f64>>, usual: f64) -> Result<f64> {
        match number {
            None => Ok(usual),
            Some(it) if (0.0..=100.0).contains(it.get_ref()) => Ok(it.get_ref() / 100.0),
            Some(it) => self.refuse(it, "write a percentage from 0 to 100".into()),
        }
    }

    pub(crate) fn bytes(
        &self,
        size: &Spanned<As<Bytes>>,
        (least, most): (u64, u64),
    ) -> Result<u64> {
        let bytes = size.get_ref().0.0;
        if (least..=most).contains(&bytes) {
            return Ok(bytes);
        }
        let (least, most) = (Bytes(least), Bytes(most));
        self.refuse(size, format!("write a size from {least} to {most}"))
    }

    pub(crate) fn rate(&self, size: Option<&Spanned<As<Bytes>>>) -> Result<Option<f64>> {
        size.map(|size| Ok(self.bytes(size, RATE)? as f64)).transpose()
    }

    /// Any number in a range.
    pub(crate) fn amount(
        &self,
        number: &Spanned<f64>,
        (least, most): (f64, f64),
    ) -> Result<f64> {
        match *number.get_ref() {
            it if (least..=most).contains(&it) => Ok(it),
            _ => self.refuse(number, format!("write a number from {least} to {most}")),
        }
    }

    /// A span between these seconds.
    pub(crate) fn span(
        &self,
        span: &Spanned<As<Span>>,
        (least, most): (f64, f64),
    ) -> Result<Nanos> {
        let it = span.get_ref().0;
        if (least..=most).contains(&it.0) {
            return Ok(it.nanos());
        }
        self.refuse(span, format!("write a duration from {least}s to {most}s"))
    }
}
