//! The command line `cenote`.

fn main() {}
