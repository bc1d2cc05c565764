//! Whether both images are compared before the switch-over: yes, unless somebody does
//! without it.

use clap::Args;

/// Whether both images are compared.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct VerifyArgs {
    /// Switch over without reading and comparing both images before
    #[arg(long)]
    no_verify: bool,
    /// Compare both images, as is the default: scripts of before go on working
    #[arg(long, hide = true, conflicts_with = "no_verify")]
    verify: bool,
}

impl VerifyArgs {
    /// In the API's form.
    pub(crate) fn verify(self) -> bool {
        self.verify || !self.no_verify
    }
}
