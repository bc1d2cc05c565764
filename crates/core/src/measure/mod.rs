//! What a disk, a class or a datastore did, in figures: what the loops decide on and
//! what people see.

mod buckets;
mod filling;
mod lq;
mod mean;
mod pattern;
mod point;
pub mod probe;
mod regression;
mod slot;
mod spread;
mod steps;
mod timeline;
mod window;

pub use buckets::{BUCKETS_MAX, Buckets, Scale};
pub use filling::{Filling, Trend};
pub use lq::{Line, LqFit, LqLine};
pub(crate) use mean::Mean;
pub use pattern::Pattern;
pub use point::Point;
pub use slot::{Side, Summary};
pub use spread::Spread;
pub use steps::{Steps, Timed};
pub use timeline::Timeline;
pub use window::{Traffic, Window};
