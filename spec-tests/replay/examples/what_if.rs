//! How near the predictions of `cenote predict` are to what really happens:
//! `cargo run --release -p cenote-replay --example what_if [SEED]`.

use cenote_replay::what_if::validation::compare;

fn main() {
    let seed = std::env::args().nth(1).map_or(0, |seed| seed.parse().expect("a seed is a number"));
    print!("{}", compare(seed));
}
