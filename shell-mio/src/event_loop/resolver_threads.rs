//! Threads that ask the operating system for the addresses of host names.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote_shell::runtime::timeout_at;
use futures_channel::oneshot::{self, Receiver, Sender};

use super::EventLoop;

/// How many names are looked up at the same time, as long as answers come: a client of a thousand servers
/// has no thousand threads.
const USUAL_THREADS: usize = 16;

/// A name that has waited this long for a thread gets one more: the others wait for answers that do not come.
const PATIENCE: Duration = Duration::from_millis(250);

/// How many names are looked up at the same time at most.
const MAX_THREADS: usize = 512;

/// A host and a port.
type Name = (String, u16);

/// Tasks that look up the same name share an error.
type Lookup = Result<Vec<SocketAddr>, Arc<io::Error>>;

type Ask = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The queue of names to look up. Tasks that look up the same name at the same time share the answer.
pub(super) struct ResolverThreads {
    queue: Mutex<Queue>,
    /// Blocks for the answer.
    ask: Box<Ask>,
}

#[derive(Default)]
struct Queue {
    tasks: BTreeMap<Name, Vec<Sender<Lookup>>>,
    /// The names that no thread looks up yet.
    waiting: VecDeque<Name>,
    threads: usize,
}

impl EventLoop {
    pub(super) async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let name = (host.to_owned(), port);
        let mut answer = self.enqueue(&name)?;
        let result = match timeout_at(self, Instant::now() + PATIENCE, &mut answer).await {
            Some(result) => result,
            None => {
                self.add_thread(&name);
                answer.await
            }
        };
        let result = result.map_err(|_| io::Error::other("there is no thread to resolve names"))?;
        result.map_err(|error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error),
        })
    }

    fn enqueue(&self, name: &Name) -> io::Result<Receiver<Lookup>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.inner.resolver.queue();
            let queue = &mut *queue;
            match queue.tasks.entry(name.clone()) {
                Entry::Occupied(mut tasks) => {
                    tasks.get_mut().push(sender);
                    return Ok(receiver);
                }
                Entry::Vacant(tasks) => {
                    tasks.insert(vec![sender]);
                    queue.waiting.push_back(name.clone());
                }
            }
            if queue.threads >= USUAL_THREADS {
                return Ok(receiver);
            }
            queue.threads += 1;
        }
        match self.start_thread() {
            Ok(()) => Ok(receiver),
            // Another thread comes to it.
            Err(_) if self.inner.resolver.queue().threads > 0 => Ok(receiver),
            Err(error) => {
                // All of them fail.
                let unanswered = std::mem::take(&mut *self.inner.resolver.queue());
                drop(unanswered);
                Err(error)
            }
        }
    }

    /// One more thread, if no thread has come to this name.
    fn add_thread(&self, name: &Name) {
        let mut queue = self.inner.resolver.queue();
        if queue.threads >= MAX_THREADS || !queue.waiting.contains(name) {
            return;
        }
        queue.threads += 1;
        drop(queue);
        // Without it the name waits for the others.
        let _ = self.start_thread();
    }

    /// Starts a thread that is counted already.
    fn start_thread(&self) -> io::Result<()> {
        let own = Arc::clone(&self.inner.resolver);
        match self.start_helper(move || own.run()) {
            Ok(thread) => {
                drop(thread);
                Ok(())
            }
            Err(error) => {
                self.inner.resolver.queue().threads -= 1;
                Err(error)
            }
        }
    }
}

impl Default for ResolverThreads {
    /// They ask the operating system.
    fn default() -> Self {
        Self::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect))
    }
}

impl ResolverThreads {
    fn new(ask: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self { queue: Mutex::default(), ask: Box::new(ask) }
    }

    /// What each thread does, until there is nothing left to look up.
    fn run(&self) {
        while let Some(name) = self.next() {
            let result = (self.ask)(&name.0, name.1).map_err(Arc::new);
            // A task that comes from now on gets a newer answer.
            let tasks = self.queue().tasks.remove(&name);
            for task in tasks.into_iter().flatten() {
                // It may be gone.
                drop(task.send(result.clone()));
            }
        }
    }

    /// A thread that finds nothing to do leaves under the same lock, so that no task relies on it.
    fn next(&self) -> Option<Name> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, RwLock};
    use std::time::{Duration, Instant};

    use super::{MAX_THREADS, ResolverThreads, USUAL_THREADS};
    use crate::event_loop::Owner;
    use crate::loop_thread::{self, LoopThread};

    const ADDRESS: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7);

    /// The names of many hosts whose resolver does not answer, and one after them; then more than there may be threads.
    #[test]
    fn names_without_an_answer_do_not_delay_another() {
        let (mut event_loop, poll) = loop_thread::new_event_loop(Owner::Pool).unwrap();
        let silence = Arc::new(RwLock::new(()));
        let over = Arc::clone(&silence);
        let threads = ResolverThreads::new(move |host, _| {
            if host != "healthy" {
                drop(over.read());
            }
            Ok(vec![ADDRESS])
        });
        Arc::get_mut(&mut event_loop.inner).unwrap().resolver = Arc::new(threads);
        let silent = silence.write().unwrap();
        let begin = Instant::now();
        let (tell, told) = channel();
        let look_up = |host: String| {
            let (tell, own) = (tell.clone(), event_loop.clone());
            event_loop.start(async move {
                let found = own.look_up(&host, 7).await.unwrap();
                tell.send((host, found)).unwrap();
            });
        };
        let hosts = 5 * USUAL_THREADS;
        (0..hosts).for_each(|number| look_up(format!("silent-{number}")));
        look_up("healthy".to_owned());
        let thread = LoopThread::default();
        thread.start(event_loop.clone(), poll).unwrap();
        assert_eq!(told.recv().unwrap(), ("healthy".to_owned(), vec![ADDRESS]));
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());

        let more = MAX_THREADS + 8 - hosts;
        (0..more).for_each(|number| look_up(format!("more-{number}")));
        let inner = Arc::clone(&event_loop.inner.resolver);
        let is_full = || {
            let queue = inner.queue();
            (queue.threads, queue.waiting.len()) == (MAX_THREADS, 8)
        };
        while !is_full() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", inner.queue().threads);
            std::thread::yield_now();
        }

        drop(silent);
        (0..hosts + more).for_each(|_| drop(told.recv().unwrap()));
        thread.join(None);
        while inner.queue().threads > 0 {
            std::thread::yield_now();
        }
        assert!(inner.queue().tasks.is_empty());
    }
}
