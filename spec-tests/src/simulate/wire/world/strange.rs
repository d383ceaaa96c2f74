//! What is strange: forks, mistakes, options that change, routers that come and go.

use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::Input;
use cenote_core::wire::Flags;
use cenote_endpoint::{LoadBalanced, Topology};

use super::World;
use super::due::Due;
use crate::simulate::books::Place;
use crate::simulate::met::Encounter;
use crate::simulate::mistake::mistake;
use crate::simulate::wire::cause::Why;
use crate::simulate::wire::network::{Packet, Side};

impl World<'_> {
    pub(super) fn plan_oddities(&mut self) {
        if !self.plan.other_options.is_empty() {
            self.plan_options();
        }
        if let Some(every) = self.plan.services_move_every {
            self.plan_in(every, Due::ServicesMove);
        }
        if let Some(every) = self.plan.fork_every {
            self.plan_in(every, Due::Fork);
        }
        if self.plan.misuse_every != 0 {
            self.plan_misuse();
        }
    }

    pub(super) fn set_options(&mut self) -> Result<(), String> {
        if self.is_calm() {
            return Ok(());
        }
        self.plan_options();
        let count = self.plan.other_options.len() as u64 + 1;
        let place = usize::try_from(self.chance.below(count)).unwrap_or_default();
        let options = self.plan.other_options.get(place).unwrap_or(&self.plan.options);
        self.met.count(Encounter::OptionsChange);
        self.feed(Input::SetOptions { options: Box::new(options.clone()) })
    }

    fn plan_options(&mut self) {
        let after = self.chance.time(self.plan.trouble_time) * 4;
        self.plan_in(after, Due::SetOptions);
    }

    /// Some routers go, with their connections, or others come.
    pub(super) fn services_move(&mut self) -> Result<(), String> {
        if self.is_calm() {
            return Ok(());
        }
        if let Some(every) = self.plan.services_move_every {
            self.plan_in(every, Due::ServicesMove);
        }
        self.met.count(Encounter::ServicesMove);
        let services = usize::try_from(self.chance.between(1, 4)).unwrap_or(1);
        let topology = Topology::LoadBalanced(LoadBalanced { services });
        self.server.set_topology(self.time_of_server(), topology);
        self.settle_server();
        Ok(())
    }

    /// From here on this is the child. Its sockets are its parent's, to whom nothing may happen: they
    /// are forgotten without a word. What its parent had out comes back, broken or not. Clients have
    /// the server watched anew.
    pub(super) fn fork(&mut self) -> Result<(), String> {
        if self.is_calm() {
            return Ok(());
        }
        if let Some(every) = self.plan.fork_every {
            self.plan_in(every, Due::Fork);
        }
        self.met.count(Encounter::Fork);
        for link in std::mem::take(&mut self.lines).into_keys() {
            let sent = self.network.sent(link).unwrap_or_default();
            self.parents.push((link, sent));
        }
        let parent_lives = self.chance.time(self.plan.trouble_time);
        self.plan_in(parent_lives, Due::ParentEnds);
        self.take_leave_of_uses();
        self.books.fork();
        self.watch = None;
        self.feed(Input::ResetAfterFork)?;
        if self.plan.is_balanced() { Ok(()) } else { self.begin_watching() }
    }

    /// Whoever had a connection has one that is of no use, and finds out or not.
    fn take_leave_of_uses(&mut self) {
        let all: Vec<_> = self.books.sockets().copied().collect();
        for socket in all {
            let (connection, use_number) = (socket.id.number(), socket.use_number);
            match socket.place {
                Place::Used { .. } => {}
                // Whoever was opening it, and late, does so for the parent.
                Place::Aborted => {
                    self.hang_up_connection(connection);
                    self.books.drop_unopened(connection);
                    continue;
                }
                Place::Opening { .. } | Place::Idle | Place::Inherited { .. } => continue,
            }
            let reason = "it was opened by the process that this one was forked from";
            let error = ConnectionError::network(Stage::Operation, reason);
            let broken = self.chance.flip().then_some(error);
            self.uses.entry(connection).or_default().broken = broken;
            let after = self.time(self.plan.work);
            self.plan_in(after, Due::Finish { connection, use_number });
        }
    }

    /// The parent's sockets end with it. Until then its child has sent nothing there.
    pub(super) fn parent_ends(&mut self) -> Result<(), String> {
        for (link, sent) in std::mem::take(&mut self.parents) {
            if self.network.sent(link).is_some_and(|now| now != sent) {
                return Err(format!("a child speaks on its parent's link {link}"));
            }
            self.send(link, Side::Far, Packet::End);
            self.network.hang_up(link);
        }
        Ok(())
    }

    /// Mistakes of whoever embeds the machines: each is refused, and nothing has happened.
    pub(super) fn misuse(&mut self) -> Result<(), String> {
        if self.is_calm() {
            return Ok(());
        }
        self.plan_misuse();
        let refused = match self.chance.below(4) {
            0 => self.mislead_monitor(),
            1 => self.ask_out_of_turn(),
            _ => self.mislead_pool(),
        };
        let Some(refused) = refused else { return Ok(()) };
        self.met.count(Encounter::Mistake);
        refused
    }

    fn mislead_pool(&mut self) -> Option<Result<(), String>> {
        let number = self.causes;
        let cause =
            || Why::new(number, ConnectionError::network(Stage::Operation, "nothing has happened"));
        let input = mistake(&self.books, self.plan.is_balanced(), &mut self.chance, cause)?;
        let at = self.look_at_clock();
        Some(self.subject.feed_misuse(at, input))
    }

    /// Asks on a connection that has not answered yet, which goes on as if nothing had been.
    fn ask_out_of_turn(&mut self) -> Option<Result<(), String>> {
        let line = self.lines.values_mut().find(|line| line.talk.awaits_reply())?;
        let command = rawdoc! { "ping": 1 };
        let asked = line.talk.ask(&command, Some("admin"), Flags::NONE);
        let is_refused = asked.is_err() && line.talk.awaits_reply();
        let complaint = || "a request is taken while another one waits for its reply".to_owned();
        Some(if is_refused { Ok(()) } else { Err(complaint()) })
    }

    fn plan_misuse(&mut self) {
        let times = u32::try_from(self.plan.misuse_every).unwrap_or(1);
        let after = self.chance.time(self.plan.latency) * times + Duration::from_micros(1);
        self.plan_in(after, Due::Misuse);
    }
}
