use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::Event;
use cenote_tokio::PoolEvent;

use crate::check::{Checker, Limits, Line, Report};
use crate::event_json;

/// Hears the events of one pool, judges them in a thread of its own, and writes them down if asked.
/// Whoever uses the pool tells them, and waits only when very many have not been judged yet: memory
/// has an end.
#[derive(Debug)]
pub(crate) struct Witness {
    thread: JoinHandle<io::Result<Report>>,
}

/// So many events may wait to be judged.
const BACKLOG: usize = 1 << 16;

/// When, whose, and what.
type Heard = (Duration, Arc<ServerAddress>, Event<ConnectionError>);

/// What is given to the pool.
#[derive(Debug)]
pub(crate) struct Ear {
    began: Instant,
    tell: SyncSender<Heard>,
}

impl Ear {
    /// For how long there has been somebody to hear.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn hear(&self, event: &PoolEvent) {
        let PoolEvent { address, event } = event;
        // Whoever judges has gone only after a trouble with the file, which it tells.
        let _ = self.tell.send((self.now(), Arc::clone(address), event.clone()));
    }
}

impl Witness {
    pub(crate) fn new(events: Option<&Path>) -> io::Result<(Self, Ear)> {
        let file = events.map(File::create).transpose()?.map(BufWriter::new);
        let (tell, told) = sync_channel(BACKLOG);
        let thread = thread::Builder::new().name("cenote-witness".to_owned());
        let thread = thread.spawn(move || judge(&told, file))?;
        Ok((Self { thread }, Ear { began: Instant::now(), tell }))
    }

    /// Whether it has given up already, which only a trouble with the file makes it do.
    pub(crate) fn has_gone(&self) -> bool {
        self.thread.is_finished()
    }

    /// What the rules say to all that was heard, once the pool is gone.
    pub(crate) fn report(self) -> io::Result<Report> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the witness panicked")))
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
