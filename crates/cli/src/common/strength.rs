//! Whether a rule must hold or should hold; alike for rules about VMs and about disks.

use clap::Args;

/// How strong a rule is.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct StrengthArgs {
    /// The rule must hold, and is repaired first; this is the default
    #[arg(long, conflicts_with = "should")]
    must: bool,
    /// The rule should hold: it gives way if nothing else helps
    #[arg(long)]
    should: bool,
}

impl StrengthArgs {
    /// Whether the rule must hold.
    pub(crate) fn is_must(self) -> bool {
        self.must || !self.should
    }
}
