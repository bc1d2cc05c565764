//! E2
use super::{Outcome, Run, Scenario};
/// x
pub const WAVES: &str = include_str!("../../../../scenarios/nas250.toml");
/// x
pub const ONE: &str = include_str!("../../../../scenarios/nas250-one.toml");
/// x
pub fn run(text: &str) -> Outcome {
    let s: Scenario = text.parse().unwrap_or_else(|e| panic!("{e}"));
    Run::whole(&s)
}
