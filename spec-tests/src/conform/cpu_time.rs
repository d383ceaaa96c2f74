//! Whether the machine had time for a test that is played in real time.
//!
//! Some official files give a whole login 250 ms. PBKDF2 takes a part of that by itself, and on a
//! machine that is busy with other things it may take all of it: what such a test says then, it says
//! of the machine. So whoever plays it measures what time other work gets meanwhile.

use std::hint::black_box;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sha2::Sha256;

/// Plays a test, and once more if it fails while the machine has no time for it; five times at most,
/// and each time when there is some again, or after a while.
pub(super) fn play(mut play: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    const ATTEMPTS: usize = 5;
    play_until(ATTEMPTS, wait_for_calm, || {
        let meter = Meter::begin();
        let played = play();
        let is_worth_nothing = played.is_err() && meter.was_starved();
        (played, is_worth_nothing)
    })
}

/// Plays until it is worth something, or so many times, and waits in between.
fn play_until(
    attempts: usize,
    mut wait: impl FnMut(),
    mut play: impl FnMut() -> (Result<(), String>, bool),
) -> Result<(), String> {
    for _ in 1..attempts {
        let (played, is_worth_nothing) = play();
        if !is_worth_nothing {
            return played;
        }
        wait();
    }
    let (played, is_worth_nothing) = play();
    // It stays a failure: nobody knows better.
    let reason = "the machine was too busy for the times of this file, whenever it was played";
    played.map_err(|what| if is_worth_nothing { format!("{what}\n({reason})") } else { what })
}

/// Until a login and a thread's sleep take their usual time, but not for ever.
fn wait_for_calm() {
    const PATIENCE: Duration = Duration::from_secs(20);
    const LOOK: Duration = Duration::from_millis(250);
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let meter = Meter::begin();
        thread::sleep(LOOK);
        if !meter.was_starved() {
            return;
        }
    }
}

/// A thread that wants nothing but to be woken in time.
struct Meter {
    is_over: Sender<()>,
    thread: JoinHandle<Duration>,
}

/// How often it wants to be woken.
const BEAT: Duration = Duration::from_millis(5);

/// How late it may be, and how long what a client computes for a login may take: a fifth and less than
/// a half of the 250 ms.
const TOLERABLE: Duration = Duration::from_millis(50);
const LOGIN: Duration = Duration::from_millis(100);

impl Meter {
    fn begin() -> Self {
        let (is_over, over) = channel();
        let thread = thread::spawn(move || {
            let mut worst = Duration::ZERO;
            loop {
                let begin = Instant::now();
                if over.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout) {
                    return worst;
                }
                worst = worst.max(begin.elapsed().saturating_sub(BEAT));
            }
        });
        Self { is_over, thread }
    }

    /// The test is over. Says whether it had too little of the machine to say anything.
    fn was_starved(self) -> bool {
        drop(self.is_over);
        self.thread.join().unwrap_or_default() > TOLERABLE || login() > LOGIN
    }
}

/// How long it takes here and now.
fn login() -> Duration {
    const ITERATIONS: u32 = 4096;
    let begin = Instant::now();
    black_box(pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(b"pencil", b"salt", ITERATIONS));
    begin.elapsed()
}

#[cfg(test)]
mod tests {
    use super::play_until;

    /// What is worth something counts, whatever it is; and in the end what there is.
    #[test]
    fn a_test_is_played_again_only_if_it_is_worth_nothing() {
        let failed = |what: &str| Err(what.to_owned());
        for (said, expected, plays) in [
            (vec![(Ok(()), false)], Ok(()), 1),
            (vec![(failed("a"), false), (Ok(()), false)], failed("a"), 1),
            (vec![(failed("a"), true), (Ok(()), false)], Ok(()), 2),
            (vec![(failed("a"), true), (failed("b"), true), (failed("c"), false)], failed("c"), 3),
        ] {
            let (mut said, mut played, mut waited) = (said.into_iter(), 0, 0);
            let outcome = play_until(
                3,
                || waited += 1,
                || {
                    played += 1;
                    said.next().expect("no more than that")
                },
            );
            assert_eq!((outcome, played, waited), (expected, plays, plays - 1));
        }
    }

    #[test]
    fn a_machine_that_never_has_time_is_told() {
        let played = play_until(2, || {}, || (Err("late".to_owned()), true)).unwrap_err();
        assert!(played.starts_with("late\n(the machine was too busy"), "{played}");
    }
}
