//! Tests that compare rates and times, or in which the host is busy: with an emulated
//! guest, a database, or gigabytes. Two of them at a time is what two cores can do.

mod classes;
mod dvdstore;
mod guards;
mod guests;
mod hanging;
mod lab;
mod shares;
mod sparse;
mod storage_drs;
mod switching_over;
mod watching;
