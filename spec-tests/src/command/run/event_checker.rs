use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cenote_check::{Checker, Limits, Line, Report};
use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::Event;
use cenote_tokio::PoolEvent;

use crate::event_json;

/// Receives the events of one pool, checks them in a thread of its own, and writes them into a file
/// if asked. Sending blocks only while [`BACKLOG`] events are unchecked, which bounds memory.
#[derive(Debug)]
pub(super) struct EventChecker {
    thread: JoinHandle<()>,
    judged: Receiver<io::Result<Report>>,
}

/// How long a pool may emit events after the report was asked for. By then it is closed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum number of unchecked events.
const BACKLOG: usize = 1 << 16;

/// Time, address of the pool, event.
type Heard = (Duration, Arc<ServerAddress>, Event<ConnectionError>);

/// The sending half, for the pool's subscriber.
#[derive(Debug)]
pub(super) struct EventSender {
    began: Instant,
    tell: SyncSender<Heard>,
}

impl EventSender {
    /// The time since the start.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn hear(&self, event: &PoolEvent) {
        let PoolEvent { address, event } = event;
        // The receiver is dropped only after an error of the file, which `report` returns.
        let _ = self.tell.send((self.now(), Arc::clone(address), event.clone()));
    }
}

impl EventChecker {
    pub(super) fn new(events: Option<&Path>) -> io::Result<(Self, EventSender)> {
        let file = events.map(File::create).transpose()?.map(BufWriter::new);
        let (tell, told) = sync_channel(BACKLOG);
        let (judge_done, judged) = sync_channel(1);
        let thread = thread::Builder::new().name("cenote-checker".to_owned());
        // If there is no receiver any more, there was no patience any more.
        let thread = thread.spawn(move || drop(judge_done.send(judge(&told, file))))?;
        Ok((Self { thread, judged }, EventSender { began: Instant::now(), tell }))
    }

    /// Whether it has given up already, which only a trouble with the file makes it do.
    pub(super) fn has_gone(&self) -> bool {
        self.thread.is_finished()
    }

    /// What the rules say to all that was heard, once the pool is gone. A pool that does not go away
    /// is an error, after a while.
    pub(super) fn report(self) -> io::Result<Report> {
        self.report_within(PATIENCE)
    }

    fn report_within(self, patience: Duration) -> io::Result<Report> {
        let why = "the pool was closed, but is not gone: what it may still tell cannot be judged";
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, why));
        self.judged.recv_timeout(patience).unwrap_or_else(late)
    }
}

fn judge(told: &Receiver<Heard>, mut file: Option<BufWriter<File>>) -> io::Result<Report> {
    let mut checker = Checker::new(Limits::default());
    for (at, address, event) in told {
        checker.tell(&Line::of(&event, &address, at));
        if let Some(file) = &mut file {
            serde_json::to_writer(&mut *file, &event_json::line(&event, &address, at))?;
            file.write_all(b"\n")?;
        }
    }
    file.map(BufWriter::into_inner).transpose()?;
    Ok(checker.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// It ends, whether events stop or go on for ever.
    #[test]
    fn a_pool_that_does_not_go_away_is_an_error() {
        for goes_on in [false, true] {
            let (checker, ear) = EventChecker::new(None).unwrap();
            let is_over = Arc::new(AtomicBool::new(!goes_on));
            let over = Arc::clone(&is_over);
            let tell = thread::spawn(move || {
                let address = Arc::new("a:1".parse().unwrap());
                while !over.load(Ordering::Relaxed) && ear.tell_one(&address) {}
                ear
            });
            let error = checker.report_within(Duration::from_millis(1)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
            is_over.store(true, Ordering::Relaxed);
            drop(tell.join().unwrap());
        }
    }

    impl EventSender {
        /// Whether it was received.
        fn tell_one(&self, address: &Arc<ServerAddress>) -> bool {
            let event =
                Event::ConnectionCheckOutStarted { request: cenote_core::pool::WaiterId(1) };
            self.tell.send((self.now(), Arc::clone(address), event)).is_ok()
        }
    }

    #[test]
    fn a_pool_that_goes_away_has_its_report() {
        let (checker, ear) = EventChecker::new(None).unwrap();
        ear.tell_one(&Arc::new("a:1".parse().unwrap()));
        drop(ear);
        assert_eq!(checker.report().unwrap().events, 1);
    }
}
