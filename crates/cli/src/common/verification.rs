//! Whether both images are compared before the switch-over: yes, unless somebody does
//! without it.

use clap::Args;

/// Whether both images are compared.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct VerifyArgs {
    /// Switch over without comparing both images
    #[arg(long)]
    no_verify: bool,
    /// Compare both images (the default; kept for old scripts)
    #[arg(long, hide = true, conflicts_with = "no_verify")]
    verify: bool,
}

impl VerifyArgs {
    /// In the API's form.
    pub(crate) fn verify(self) -> bool {
        self.verify || !self.no_verify
    }
}
