//! The number of a migration, a plan or a policy on the command line.

/// Reads the number of a `what`, and says where such numbers are listed if it is none.
pub(crate) fn number_of(
    what: &'static str,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let hint = |_| format!("give the {what}'s number (see `sterna {what} list`)");
        text.parse().map_err(hint)
    }
}
