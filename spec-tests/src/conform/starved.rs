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

/// A thread that wants nothing but to be woken in time.
pub(super) struct Meter {
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
    pub(super) fn begin() -> Self {
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
    pub(super) fn was_starved(self) -> bool {
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
