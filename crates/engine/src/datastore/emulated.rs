//! Where an emulated array is, as people write it:
//! `array://old-fc?spindles=7&path=/vm/old`.
//!
//! It is shown with the parameters that were given, also those that the model has
//! anyway: whoever gave them wants them to hold, whatever a later version thinks of that
//! array.
//!
//! The model, and the directory that really holds the bytes. The directory comes
//! last and goes to the end of the text, so that it may have any character. Without
//! one, the daemon finds a place.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use sterna_core::array::{Model, ParseModelError};

/// What such a location begins with.
pub(super) const SCHEME: &str = "array://";

const PATH: &str = "path=";

/// An emulated array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulated {
    /// What its requests take.
    pub model: Model,
    /// The model in the words of whoever gave it.
    said: String,
    /// The directory that holds its images, if it was said.
    pub path: Option<PathBuf>,
}

/// The text is no emulated array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseEmulatedError {
    /// The model is none.
    #[error(transparent)]
    Model(#[from] ParseModelError),
    /// The path is none that a directory could have.
    #[error("path: `{0}` is not an absolute path without `..`; give the plain path")]
    Path(String),
}

impl FromStr for Emulated {
    type Err = ParseEmulatedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix(SCHEME).unwrap_or(text);
        // Behind `?` or `&` alone: no value has these two in it.
        let mut found = text.match_indices(PATH).map(|(at, _)| at);
        let Some(at) = found.find(|at| text[..*at].ends_with(['?', '&'])) else {
            return Emulated::new(text, None);
        };
        let (model, path) = (&text[..at - 1], &text[at + PATH.len()..]);
        let plain = Path::new(path);
        let upwards = plain.components().any(|part| part == Component::ParentDir);
        if !plain.is_absolute() || upwards || path.contains('\0') {
            return Err(ParseEmulatedError::Path(path.into()));
        }
        // Without doubled and trailing slashes.
        Emulated::new(model, Some(plain.components().collect()))
    }
}

impl Emulated {
    fn new(model: &str, path: Option<PathBuf>) -> Result<Self, ParseEmulatedError> {
        let said = model.trim_end_matches('?').to_owned();
        Ok(Emulated { model: model.parse()?, said, path })
    }
}

impl fmt::Display for Emulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.said)?;
        if let Some(path) = &self.path {
            let between = if self.said.contains('?') { '&' } else { '?' };
            write!(f, "{between}{PATH}{}", path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_array_is_a_model_and_a_directory() {
        let array: Emulated = "array://old-fc?spindles=8&path=/vm//old/".parse().unwrap();
        assert_eq!(array.model.spindles(), 8);
        assert_eq!(array.path, Some("/vm/old".into()));
        assert_eq!(array.to_string(), "array://old-fc?spindles=8&path=/vm/old");
        // Seven is what it has anyway.
        for text in
            ["array://old-fc?cache=0.5G&spindles=7", "array://old-fc?hits=3&path=/a"]
        {
            assert_eq!(text.parse::<Emulated>().unwrap().to_string(), text);
        }
        assert_eq!("array://old-fc?".parse::<Emulated>().unwrap().said, "old-fc");
        let plain: Emulated = "array://new-fc?path=/a&b?path=c".parse().unwrap();
        assert_eq!(plain.path, Some("/a&b?path=c".into()));
        assert_eq!(plain.to_string(), "array://new-fc?path=/a&b?path=c");
        let none: Emulated = "array://old-fc".parse().unwrap();
        assert_eq!(
            (none.path.as_ref(), none.to_string().as_str()),
            (None, "array://old-fc")
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| text.parse::<Emulated>().unwrap_err().to_string();
        assert!(error("array://old").contains("give one of old-fc"));
        assert!(error("array://old-fc?path=vm").contains("`vm` is not an absolute path"));
        assert!(error("array://old-fc?path=/a/../b").contains("without `..`"));
        assert!(error("array://old-fc?spindle=7&path=/a").contains("spindles"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_the_same(
            spindles in 1u32..100,
            path in "(/[a-z&?=.% ]{1,6}){0,4}",
        ) {
            let text = format!("array://e4-fc?spindles={spindles}&path={path}");
            if let Ok(array) = text.parse::<Emulated>() {
                prop_assert_eq!(array.to_string().parse(), Ok(array));
            }
        }
    }
}
