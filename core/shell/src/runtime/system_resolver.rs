//! Threads that ask the operating system for the addresses of host names.
//!
//! They are of their own, and no runtime's: a look-up blocks until the operating system answers, for many seconds where a
//! name server does not, and cannot be ended. So no runtime and no program waits for one at its end, and an application's
//! threads for work that blocks are left to it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, thread};

use super::lookup::{self, Lookup};
use crate::runtime::contain;

type Ask = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks host names up with the operating system's resolver, for [`Network::resolve`](super::Network::resolve).
///
/// At most 16 names are looked up at the same time, in the order in which they were asked for, each once however many
/// ask, and none of which all callers have gone. There are threads only while there are names to look up: a thread that
/// waits for the operating system when the last caller has gone ends with its answer, and holds nothing until then.
/// Clones share the threads.
#[derive(Clone)]
pub struct SystemResolver {
    queue: Arc<Mutex<Queue>>,
    /// Blocks for the answer.
    ask: Arc<Ask>,
}

#[derive(Default)]
struct Queue {
    asked: BTreeMap<Name, Vec<Lookup>>,
    /// The names that no thread looks up yet.
    waiting: VecDeque<Name>,
    threads: usize,
}

/// A host and a port.
type Name = (String, u16);

impl SystemResolver {
    /// How many threads there are at most: a client of a thousand servers has no thousand threads.
    const MAX_THREADS: usize = 16;

    fn new(ask: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { queue: Arc::default(), ask: Arc::new(ask) }
    }

    /// The addresses of a host name, in the system's order of preference. The wait may be given up at any time.
    ///
    /// # Errors
    ///
    /// Those of the operating system's resolver, or there is no thread to ask it.
    pub async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        lookup::ask(&|lookup| self.enqueue(lookup), host, port).await
    }

    fn enqueue(&self, lookup: Lookup) {
        let mut queue = self.queue();
        let name = (lookup.host().to_owned(), lookup.port());
        let Queue { asked, waiting, threads } = &mut *queue;
        let same = asked.entry(name.clone()).or_default();
        same.push(lookup);
        if same.len() > 1 {
            return;
        }
        waiting.push_back(name);
        if *threads < Self::MAX_THREADS {
            *threads += 1;
            drop(queue);
            self.start_thread();
        }
    }

    fn start_thread(&self) {
        let own = self.clone();
        let started =
            thread::Builder::new().name("cenote-resolver".to_owned()).spawn(move || own.run());
        if let Err(error) = started {
            let mut queue = self.queue();
            queue.threads -= 1;
            // The other threads come to what waits, if there are any.
            let unanswered =
                if queue.threads == 0 { std::mem::take(&mut *queue) } else { Queue::default() };
            drop(queue);
            unanswered
                .asked
                .into_values()
                .for_each(|lookups| answer(lookups, &Err(error_again(&error))));
        }
    }

    /// What each thread does, until there is nothing left to look up.
    fn run(&self) {
        while let Some(name) = self.next() {
            let found = contain(|| (self.ask)(&name.0, name.1));
            let found = found.unwrap_or_else(|| Err(io::Error::other("the look-up panicked")));
            // A look-up that comes from now on gets a newer answer.
            let lookups = self.queue().asked.remove(&name);
            answer(lookups.into_iter().flatten(), &found);
        }
    }

    /// A thread that finds nothing to do leaves under the same lock, so that no look-up relies on it.
    fn next(&self) -> Option<Name> {
        let mut queue = self.queue();
        while let Some(name) = queue.waiting.pop_front() {
            let lookups = queue.asked.get(&name);
            if lookups.into_iter().flatten().any(Lookup::is_awaited) {
                return Some(name);
            }
            queue.asked.remove(&name);
        }
        queue.threads -= 1;
        None
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All callers share an answer.
fn answer(lookups: impl IntoIterator<Item = Lookup>, found: &io::Result<Vec<SocketAddr>>) {
    for lookup in lookups {
        lookup.answer(found.as_ref().cloned().map_err(error_again));
    }
}

fn error_again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect))
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemResolver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::thread;

    use tokio::task::{JoinSet, yield_now};

    use super::SystemResolver;

    const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7);
    const MAX: usize = SystemResolver::MAX_THREADS;

    /// More names than threads, each twice, and no answer; then those that no thread has come to are given up.
    #[tokio::test]
    async fn names_without_an_answer_take_no_more_threads() {
        let (silent, over) = channel::<()>();
        let (over, asked) = (Mutex::new(over), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&asked);
        let resolver = SystemResolver::new(move |host, _| {
            noted.lock().expect("no panic").push(host.to_owned());
            assert!(over.lock().expect("no panic").recv().is_err());
            Ok(vec![ADDRESS])
        });
        let asked = || asked.lock().expect("no panic").clone();
        let mut tasks = JoinSet::new();
        let look_up = |numbers: std::ops::Range<usize>, tasks: &mut JoinSet<_>| {
            for host in
                numbers.flat_map(|number| [format!("host-{number}"), format!("host-{number}")])
            {
                let own = resolver.clone();
                tasks.spawn(async move { own.resolve(&host, 7).await.expect("an answer") });
            }
        };
        look_up(0..MAX, &mut tasks);
        let mut given_up = JoinSet::new();
        while asked().len() < MAX {
            yield_now().await;
        }
        look_up(MAX..100, &mut given_up);
        while resolver.queue().waiting.len() < 100 - MAX {
            yield_now().await;
        }
        given_up.shutdown().await;
        look_up(100..101, &mut tasks);
        while resolver.queue().waiting.len() <= 100 - MAX {
            yield_now().await;
        }
        assert_eq!((asked().len(), resolver.queue().threads), (MAX, MAX));

        drop(silent);
        assert_eq!(tasks.join_all().await, vec![vec![ADDRESS]; 2 * (MAX + 1)]);
        while resolver.queue().threads > 0 {
            thread::yield_now();
        }
        assert!(resolver.queue().asked.is_empty());
        assert_eq!(asked().len(), MAX + 1, "each once, and none that was given up");
    }
}
