//! The names of a text, and what each stands for.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{Result, ScenarioError};

/// Names that were given, and what each stands for.
pub(crate) struct Names<'t> {
    text: &'t str,
    what: &'static str,
    known: BTreeMap<String, Vec<usize>>,
}

impl<'t> Names<'t> {
    pub(crate) fn new(text: &'t str, what: &'static str) -> Names<'t> {
        Names { text, what, known: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, name: &Spanned<String>, of: &[usize]) -> Result<()> {
        let place = name.span().start;
        let name = name.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > 63 || !name.chars().all(fits) {
            let what =
                format!("`{name}` is no name: 1 to 63 letters, digits, `.`, `_` and `-`");
            return Err(ScenarioError::at(self.text, place, what));
        }
        // `nas` of four is also `nas-1` to `nas-4`.
        let mut all = vec![(name.clone(), of.to_vec())];
        if of.len() > 1 {
            let one = |(k, it): (usize, &usize)| (format!("{name}-{}", k + 1), vec![*it]);
            all.extend(of.iter().enumerate().map(one));
        }
        for (name, of) in all {
            if self.known.insert(name.clone(), of).is_some() {
                let what = format!("there are two {}s with the name `{name}`", self.what);
                return Err(ScenarioError::at(self.text, place, what));
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, name: &Spanned<String>) -> Result<&[usize]> {
        self.known.get(name.get_ref()).map(Vec::as_slice).ok_or_else(|| {
            let names: Vec<&str> =
                self.known.keys().map(String::as_str).take(12).collect();
            let what = match names[..] {
                [] => format!("there is no {} at all", self.what),
                _ => format!(
                    "there is no {} `{}`; there are {}",
                    self.what,
                    name.get_ref(),
                    names.join(", ")
                ),
            };
            ScenarioError::at(self.text, name.span().start, what)
        })
    }
}
