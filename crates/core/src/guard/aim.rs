//! What must hold for the guest while its disk moves.

use std::fmt;
use std::str::FromStr;

use crate::Nanos;

/// What a guard holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The guest keeps at least this part of its IO/s.
    Keep(Part),
    /// 99 of 100 of its requests are answered within this time.
    P99(Nanos),
    /// The copy goes on only while the guest is gone.
    IdleOnly,
}

/// A part of the guest's IO/s: 50 % to 99.9 %, in tenths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    permille: u16,
}

impl Part {
    /// Less than half is no promise.
    pub const MIN: u16 = 500;
    /// A thousandth is less than what can be measured in minutes.
    pub const MAX: u16 = 999;

    /// So many thousandths, if that can be kept.
    pub fn new(permille: u16) -> Option<Part> {
        (Part::MIN..=Part::MAX).contains(&permille).then_some(Part { permille })
    }

    /// In thousandths.
    pub fn permille(self) -> u16 {
        self.permille
    }

    /// As a number below one.
    pub fn as_f64(self) -> f64 {
        f64::from(self.permille) / 1000.0
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.permille % 10 {
            0 => f.pad(&format!("{}%", self.permille / 10)),
            tenth => f.pad(&format!("{}.{tenth}%", self.permille / 10)),
        }
    }
}

/// The text is no part that can be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePartError {
    text: String,
}

impl fmt::Display for ParsePartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        write!(f, "`{text}` is no part to keep: write 50% to 99.9%")
    }
}

impl std::error::Error for ParsePartError {}

impl FromStr for Part {
    type Err = ParsePartError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParsePartError { text: text.into() };
        let number = text.trim().strip_suffix('%').ok_or_else(wrong)?.trim();
        let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(tenth) || tenth.len() != 1 || whole.len() > 2 {
            return Err(wrong());
        }
        let (whole, tenth): (u16, u16) =
            (whole.parse().map_err(|_| wrong())?, tenth.parse().map_err(|_| wrong())?);
        Part::new(whole * 10 + tenth).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Part>().ok().map(Part::permille);
        assert_eq!(read("97%"), Some(970));
        assert_eq!(read("99.5%"), Some(995));
        assert_eq!(read(" 50 % "), Some(500));
        for wrong in ["97", "", "%", "100%", "49.9%", "+97%", "97.55%", "9e1%", "97.%"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parts_are_shown_as_they_are_read() {
        for text in ["97%", "99.5%"] {
            assert_eq!(text.parse::<Part>().unwrap().to_string(), text);
        }
    }
}
