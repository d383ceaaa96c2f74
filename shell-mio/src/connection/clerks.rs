//! Threads that ask the operating system for the addresses of names: a few, however many names.

use std::collections::{BTreeMap, VecDeque};
use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::resolve::Outcome;
use crate::event_loop::{Answer, EventLoop, Promise, promise};

/// How many names are asked for at once, so that one that takes long keeps few others waiting, and a
/// client of a thousand servers has no thousand threads.
const THREADS: usize = 16;

/// A host and a port.
type Name = (String, u16);

/// All who ask for a name before its answer is there get the same answer.
#[derive(Default)]
pub(super) struct Clerks(Mutex<Desk>);

#[derive(Default)]
struct Desk {
    asked: BTreeMap<Name, Promise<Outcome>>,
    waiting: VecDeque<(Name, Answer<Outcome>)>,
    threads: usize,
}

impl Clerks {
    pub(super) fn ask(
        self: &Arc<Self>,
        event_loop: &EventLoop,
        host: &str,
        port: u16,
    ) -> Promise<Outcome> {
        let name = (host.to_owned(), port);
        let mut desk = self.desk();
        if let Some(promise) = desk.asked.get(&name) {
            return promise.clone();
        }
        let (promise, answer) = promise();
        desk.asked.insert(name.clone(), promise.clone());
        desk.waiting.push_back((name, answer));
        if desk.threads < THREADS {
            desk.threads += 1;
            drop(desk);
            self.hire(event_loop);
        }
        promise
    }

    fn hire(self: &Arc<Self>, event_loop: &EventLoop) {
        let clerk = Clerk { clerks: Arc::clone(self), is_employed: true };
        // If there is no thread to be had, the clerk is dropped, and whoever waits hears why.
        if let Err(error) = event_loop.promise_on_thread(move || clerk.work()) {
            let error = Arc::new(error);
            let unheard = {
                let mut desk = self.desk();
                if desk.threads > 0 { VecDeque::new() } else { desk.give_up() }
            };
            for (_, answer) in unheard {
                answer.give(Err(Arc::clone(&error)));
            }
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// There is nobody to ask.
    fn give_up(&mut self) -> VecDeque<(Name, Answer<Outcome>)> {
        for (name, _) in &self.waiting {
            self.asked.remove(name);
        }
        std::mem::take(&mut self.waiting)
    }
}

/// One thread, for as long as somebody waits for it.
struct Clerk {
    clerks: Arc<Clerks>,
    is_employed: bool,
}

impl Clerk {
    fn work(mut self) {
        while let Some(((host, port), answer)) = self.next() {
            let found = (host.as_str(), port).to_socket_addrs();
            let outcome = found.map(Iterator::collect).map_err(Arc::new);
            // Who asks from now on gets an answer of its own.
            self.clerks.desk().asked.remove(&(host, port));
            answer.give(outcome);
        }
    }

    /// Who finds nothing to do goes under the same lock, so that nobody counts on him.
    fn next(&mut self) -> Option<(Name, Answer<Outcome>)> {
        let mut desk = self.clerks.desk();
        let next = desk.waiting.pop_front();
        if next.is_none() {
            desk.threads -= 1;
            self.is_employed = false;
        }
        next
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        if self.is_employed {
            self.clerks.desk().threads -= 1;
        }
    }
}
