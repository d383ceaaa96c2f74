//! Threads that ask the operating system for the addresses of host names.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot::{self, Receiver, Sender};

use super::EventLoop;

/// How many names are looked up at the same time: enough that a slow one delays few others, and a client
/// of a thousand servers has no thousand threads.
const MAX_THREADS: usize = 16;

/// A host and a port.
type Name = (String, u16);

/// Tasks that look up the same name share an error.
type Lookup = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// The queue of names to look up. Tasks that look up the same name at the same time share the answer.
#[derive(Default)]
pub(super) struct ResolverThreads(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    tasks: BTreeMap<Name, Vec<Sender<Lookup>>>,
    /// The names that no thread looks up yet.
    waiting: VecDeque<Name>,
    threads: usize,
}

impl EventLoop {
    pub(super) async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let result = self.enqueue((host.to_owned(), port))?.await;
        let result = result.map_err(|_| io::Error::other("there is no thread to resolve names"))?;
        result.map_err(|error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error),
        })
    }

    fn enqueue(&self, name: Name) -> io::Result<Receiver<Lookup>> {
        let threads = &self.inner.resolver;
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = threads.queue();
            match queue.tasks.entry(name) {
                Entry::Occupied(mut tasks) => {
                    tasks.get_mut().push(sender);
                    return Ok(receiver);
                }
                Entry::Vacant(tasks) => {
                    let name = tasks.key().clone();
                    tasks.insert(vec![sender]);
                    queue.waiting.push_back(name);
                }
            }
            if queue.threads == MAX_THREADS {
                return Ok(receiver);
            }
            queue.threads += 1;
        }
        let own = Arc::clone(threads);
        if let Err(error) = self.start_helper(move || own.run()) {
            let mut queue = threads.queue();
            queue.threads -= 1;
            if queue.threads == 0 {
                // All of them fail.
                let unanswered = std::mem::take(&mut *queue);
                drop(queue);
                drop(unanswered);
                return Err(error);
            }
        }
        Ok(receiver)
    }
}

impl ResolverThreads {
    /// What each thread does, until there is nothing left to look up.
    fn run(&self) {
        while let Some(name) = self.next() {
            let found = (name.0.as_str(), name.1).to_socket_addrs();
            let result = found.map(Iterator::collect).map_err(Arc::new);
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
