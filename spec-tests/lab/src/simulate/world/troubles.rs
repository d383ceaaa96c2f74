//! The troubles of the server. Where connections have no conversations, timers say what becomes of them.

use std::time::Duration;

use super::{Due, World};
use crate::simulate::accounting::SocketState;
use crate::simulate::trouble::Trouble;

impl World<'_> {
    /// Begins a trouble, or ends the present one.
    pub(super) fn change_trouble(&mut self) {
        if self.trouble.is_some() {
            return self.end_trouble();
        }
        let Some(trouble) = self.random.pick(&self.plan.troubles) else { return };
        self.trouble = Some(trouble);
        self.coverage.count(trouble.situation());
        if self.wire.is_some() {
            return self.begin_trouble_of_conversations(trouble);
        }
        match trouble {
            Trouble::Resets => self.reset_connections(),
            Trouble::Vanishes => {
                self.accounting.sockets_mut().for_each(|socket| socket.is_dead = true);
            }
            Trouble::ClosesIdle => self.close_idle(),
            Trouble::Refuses
            | Trouble::Stalls
            | Trouble::IsSlow
            | Trouble::TalksNonsense
            | Trouble::RefusesLogins
            | Trouble::IsOverloaded
            | Trouble::StepsDown => {}
        }
    }

    /// Broken connections stay broken.
    pub(super) fn end_trouble(&mut self) {
        self.trouble = None;
        self.end_trouble_of_conversations();
    }

    /// Some services disappear, with their connections, and as many others appear.
    pub(super) fn move_services(&mut self) {
        let services = self.plan.services;
        let gone = self.random.between(1, u64::from(services));
        self.first_service = self.first_service.wrapping_add(u8::try_from(gone).unwrap_or(1));
        let first = self.first_service;
        let is_gone = |service: u8| service.wrapping_sub(first) >= services;
        for socket in self.accounting.sockets_mut() {
            socket.is_dead |= socket.service.is_some_and(is_gone);
        }
        self.move_services_of_conversations();
    }

    fn reset_connections(&mut self) {
        let all: Vec<_> = self.accounting.sockets().copied().collect();
        for socket in all {
            let connection = socket.id.number();
            if let Some(socket) = self.accounting.socket_mut(connection) {
                socket.is_dead = true;
            }
            match socket.state {
                SocketState::Idle => self.plan_in(Duration::ZERO, Due::PeerCloses { connection }),
                SocketState::Used { .. } | SocketState::Inherited { .. } => {
                    let due = Due::Finish { connection, use_number: socket.use_number };
                    self.plan_in(Duration::ZERO, due);
                }
                SocketState::Draining | SocketState::DrainAborted => {
                    self.plan_in(Duration::ZERO, Due::Drained { connection });
                }
                SocketState::Opening { .. } | SocketState::Aborted => {
                    self.plan_in(Duration::ZERO, Due::Opened { connection });
                }
            }
        }
    }

    /// The server closes all idle connections; the shell notices some of it late.
    fn close_idle(&mut self) {
        let all: Vec<_> = self.accounting.sockets().copied().collect();
        for socket in all {
            if socket.state == SocketState::Idle {
                let after = self.plan.work.draw(&mut self.random);
                self.plan_in(after, Due::PeerCloses { connection: socket.id.number() });
            }
        }
    }
}
