//! What to do about disks and datastores, seen from what was measured of them.
//!
//! **Rule.** A disk has a [`Nature`], which follows from its requests: whether they go on
//! where one before ended, how long they are, how many are under way. From natures, from
//! what devices can do and from who shares one with whom follow [`Finding`]s. Each says
//! what it was seen by; what nothing was seen of is not advised about.
//!
//! The findings are the advice with which two published studies end. Of a live storage
//! migration under a database (VMware, 2012): move disks that are read at random when they
//! are quiet, and sequential ones at any time; small requests that somebody waits for
//! suffer from a copy's large ones; flash lessens all of it; look for the weakest link
//! first. Of service levels on a shared array (EMC, 2008): a backup beside a database wants
//! a limit or a schedule, and the database a target.
//!
//! **Known gaps.** The order of requests is that since the disk was attached, rates are
//! those of the window. A request that is not aligned is not known as such.

mod facts;
mod nature;
mod rules;

pub use facts::{Datastore, Disk, Facts, Requests, Way};
pub use nature::Nature;
pub use rules::{About, Advice, Finding, advise};
