//! A guest with a database, as experiments use it: the image that `tests/guest/build` makes,
//! started as a `machine`, with a `monitor`, and `customers` in its store, whose `orders` are kept.

pub(crate) mod customers;
pub(crate) mod machine;
pub(crate) mod monitor;
pub(crate) mod orders;

/// How a guest reaches its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    VhostUser,
    Nbd,
}
