//! A scenario of any kind.
//!
//! One with `[drs]` is about hosts and what DRS does with machines there ([`hall`]); any
//! other is about arrays and what moves between them ([`fluid`]). Who writes `[[host]]` means
//! the first, and is told that `[drs]` is missing.

use std::str::FromStr;

use serde::Deserialize;
use toml::Value;

use crate::text::{ScenarioError, read};
use crate::{fluid, hall};

/// What is to be simulated.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// Waves of storage moves.
    Storage(Box<fluid::Scenario>),
    /// Machines on hosts.
    Hosts(Box<hall::Scenario>),
}

/// What tells the kinds apart.
#[derive(Deserialize)]
struct Kind {
    drs: Option<Value>,
    host: Option<Value>,
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let kind = read::<Kind>(text)?;
        if kind.drs.is_some() || kind.host.is_some_and(|it| it.is_array()) {
            text.parse().map(|it| Scenario::Hosts(Box::new(it)))
        } else {
            text.parse().map(|it| Scenario::Storage(Box::new(it)))
        }
    }
}
