//! A replica set of three servers, which elect another primary when theirs steps down.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bson::RawDocument;
use cenote_endpoint::{Endpoint, ReplicaSet, Role, Server, Topology};

use super::SET;

/// The servers; the first one is the primary in the beginning.
pub(super) struct Members {
    all: Arc<[Endpoint]>,
    stepped_down: Sender<usize>,
}

/// How long the primary may take to step down once it is told to.
const PATIENCE: Duration = Duration::from_secs(5);

impl Members {
    /// Makes three servers members of one set. `start` starts each, beside the first of them.
    ///
    /// # Errors
    ///
    /// If one of them does not start, or there is no thread.
    pub(super) fn start(
        start: impl Fn(Option<&Endpoint>, Topology) -> Result<Endpoint, String>,
    ) -> Result<Self, String> {
        let member = |first: Option<&Endpoint>, role| {
            start(first, Topology::ReplicaSet(ReplicaSet { role, ..ReplicaSet::primary(SET) }))
        };
        let first = member(None, Role::Primary)?;
        let [second, third] = [(); 2].map(|()| member(Some(&first), Role::Secondary));
        let all: Arc<[Endpoint]> = Arc::new([first, second?, third?]);
        let hosts: Vec<_> = all.iter().map(|member| member.address().to_string()).collect();
        all.iter().for_each(|member| change(member, |set| set.hosts.clone_from(&hosts)));
        let (stepped_down, steps) = channel();
        let members = Arc::downgrade(&all);
        // Ends with the servers, which have the other ends of the channel.
        let run = move || hold_elections(&members, &steps);
        let thread = thread::Builder::new().name("elections".to_owned()).spawn(run);
        thread.map_err(|error| error.to_string())?;
        Ok(Self { all, stepped_down })
    }

    pub(super) fn all(&self) -> &[Endpoint] {
        &self.all
    }

    pub(super) fn primary(&self) -> &Endpoint {
        self.all.iter().find(|member| is_primary(member)).unwrap_or(&self.all[0])
    }

    /// To be told of each command of a member before it is run.
    pub(super) fn observer(&self, index: usize) -> impl FnMut(&RawDocument) + Send + Sync + use<> {
        let stepped_down = self.stepped_down.clone();
        move |command| {
            let first = command.iter().next().and_then(Result::ok);
            if first.is_some_and(|(name, _)| name.as_str() == "replSetStepDown") {
                let _ = stepped_down.send(index);
            }
        }
    }

    /// The others store what the primary stores.
    pub(super) fn catch_up(&self) {
        let documents = self.primary().with(|server, _| server.documents());
        for member in self.all.iter().filter(|member| !is_primary(member)) {
            member.with(|server, _| server.set_documents(documents.clone()));
        }
    }
}

fn hold_elections(members: &Weak<[Endpoint]>, steps: &Receiver<usize>) {
    while let Ok(index) = steps.recv() {
        let Some(members) = members.upgrade() else { return };
        let deadline = Instant::now() + PATIENCE;
        while members.iter().any(is_primary) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        if !members.iter().any(is_primary) {
            elect(&members, index);
        }
    }
}

/// Elects the member after the one that has stepped down; it has caught up by then.
fn elect(members: &[Endpoint], index: usize) {
    let documents = members[index].with(|server, _| server.documents());
    let next = (index + 1) % members.len();
    let primary = members[next].address().to_string();
    members[next].with(|server, _| server.set_documents(documents));
    members[next].with(Server::step_up);
    for member in members.iter().filter(|member| !is_primary(member)) {
        change(member, |set| set.other_primary = Some(primary.clone()));
    }
}

fn is_primary(member: &Endpoint) -> bool {
    member.with(|server, _| {
        matches!(server.topology(), Topology::ReplicaSet(set) if set.role == Role::Primary)
    })
}

fn change(member: &Endpoint, change: impl FnOnce(&mut ReplicaSet)) {
    member.with(|server, now| {
        let mut topology = server.topology().clone();
        if let Topology::ReplicaSet(set) = &mut topology {
            change(set);
        }
        server.set_topology(now, topology);
    });
}
