//! The one binary, `sterna`.

fn main() {}
