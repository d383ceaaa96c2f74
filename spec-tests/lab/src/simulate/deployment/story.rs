//! What happened last, for the report of a failing world.

use std::collections::VecDeque;
use std::fmt;

use cenote_core::client::machine::Input;
use cenote_core::pool::Instant;
use cenote_core::topology::{Action, Event};

/// The last lines, if they are wanted.
#[derive(Debug, Default)]
pub(super) struct Story(Option<VecDeque<String>>);

/// How many lines are kept.
const KEPT: usize = 40;

impl Story {
    pub(super) fn kept() -> Self {
        Self(Some(VecDeque::new()))
    }

    pub(super) fn note(&mut self, now: Instant, what: impl FnOnce() -> String) {
        let Some(lines) = &mut self.0 else { return };
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(format!("{now} {}", what()));
    }

    pub(super) fn topology_acts(&mut self, now: Instant, action: &Action) {
        self.note(now, || match action {
            Action::AddServer { id, address } => format!("the topology adds {address} as {}", id.0),
            Action::RemoveServer { id, address } => {
                format!("the topology removes {address}, which was {}", id.0)
            }
            Action::EmitEvent(Event::ServerDescriptionChanged { address, new, .. }) => {
                format!("{address} is {new}")
            }
            Action::EmitEvent(event) => event.name().to_owned(),
        });
    }

    /// An input, except for requests, of which there are many.
    pub(super) fn client_is_fed<W>(&mut self, now: Instant, input: &Input<W>) {
        if matches!(input, Input::RequestChecks | Input::SelectServer(_)) {
            return;
        }
        self.note(now, || {
            let what = match input {
                Input::SocketOpened { server, socket, .. } => {
                    format!("of server {}: open", server.0) + &format!(" {socket}")
                }
                Input::SocketReplied { server, socket, more_to_come, .. } => {
                    let more = if *more_to_come { ", more to come" } else { "" };
                    format!("of server {}: a reply on {socket}{more}", server.0)
                }
                Input::SocketFailed { server, error, .. }
                | Input::ConnectionFailed { server, error, .. } => {
                    format!("of server {}: {error}", server.0)
                }
                Input::LookedUp { .. }
                | Input::SelectServer(_)
                | Input::SelectionTimedOut { .. }
                | Input::CancelSelection { .. }
                | Input::RequestChecks
                | Input::Timer
                | Input::Close => String::new(),
            };
            format!("{} {what}", input.name())
        });
    }
}

/// A line each.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().flatten().try_for_each(|line| write!(f, "\n  {line}"))
    }
}
