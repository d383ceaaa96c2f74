//! Whether a test in real time got enough CPU time.
//!
//! Some official files give a whole login 250 ms. PBKDF2 takes a part of that by itself, and all of it
//! on a busy machine: such a failure is the machine's. So the runner measures meanwhile how much CPU
//! time other threads get.

use std::hint::black_box;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sha2::Sha256;

/// Plays a test, and again if it fails while the machine is too busy: five times at most, each time
/// when the machine is calm again, or after 20 s.
pub(super) fn play(mut play: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    const ATTEMPTS: usize = 5;
    play_until(ATTEMPTS, wait_for_calm, || {
        let meter = Meter::begin();
        let played = play();
        let is_meaningless = played.is_err() && meter.was_too_slow();
        (played, is_meaningless)
    })
}

/// Plays until a result is meaningful, at most `attempts` times, and waits in between.
fn play_until(
    attempts: usize,
    mut wait: impl FnMut(),
    mut play: impl FnMut() -> (Result<(), String>, bool),
) -> Result<(), String> {
    for _ in 1..attempts {
        let (played, is_meaningless) = play();
        if !is_meaningless {
            return played;
        }
        wait();
    }
    let (played, is_meaningless) = play();
    // It stays a failure.
    let reason = "the machine was too busy for the times of this file, whenever it was played";
    played.map_err(|what| if is_meaningless { format!("{what}\n({reason})") } else { what })
}

/// Waits until a login and a thread's sleep take their usual time, at most for 20 s.
fn wait_for_calm() {
    const PATIENCE: Duration = Duration::from_secs(20);
    const LOOK: Duration = Duration::from_millis(250);
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let meter = Meter::begin();
        thread::sleep(LOOK);
        if !meter.was_too_slow() {
            return;
        }
    }
}

/// Measures how late a sleeping thread is woken.
struct Meter {
    is_over: Sender<()>,
    thread: JoinHandle<Duration>,
}

/// How long it sleeps each time.
const BEAT: Duration = Duration::from_millis(5);

/// How late it can be woken, and how long the computation of a login can take: a fifth and less than
/// half of the 250 ms.
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

    /// Ends the measurement; returns whether the machine was too slow for the test.
    fn was_too_slow(self) -> bool {
        drop(self.is_over);
        self.thread.join().unwrap_or_default() > TOLERABLE || login() > LOGIN
    }
}

/// How long the computation of a login takes at the moment.
fn login() -> Duration {
    const ITERATIONS: u32 = 4096;
    let begin = Instant::now();
    black_box(pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(b"pencil", b"salt", ITERATIONS));
    begin.elapsed()
}

#[cfg(test)]
mod tests {
    use super::play_until;

    /// The first meaningful result counts, or the last one.
    #[test]
    fn a_test_is_played_again_only_if_it_is_meaningless() {
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
    fn a_machine_that_is_always_busy_is_reported() {
        let played = play_until(2, || {}, || (Err("late".to_owned()), true)).unwrap_err();
        assert!(played.starts_with("late\n(the machine was too busy"), "{played}");
    }
}
