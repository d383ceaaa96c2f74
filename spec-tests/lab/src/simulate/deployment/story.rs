//! What happened last, for the report of a failing world.

use std::collections::VecDeque;
use std::fmt;

use cenote_core::monitor;
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

    /// An input of the monitor of this server, except for requests, of which there are many.
    pub(super) fn monitor_is_fed(
        &mut self,
        now: Instant,
        server: &impl fmt::Display,
        input: &monitor::Input,
    ) {
        if matches!(input, monitor::Input::RequestCheck) {
            return;
        }
        self.note(now, || {
            let what = match input {
                monitor::Input::Opened { socket, .. } => format!("{socket} is open"),
                monitor::Input::Replied { socket, more_to_come, .. } => {
                    format!(
                        "{socket}: a reply{}",
                        if *more_to_come { ", more to come" } else { "" }
                    )
                }
                monitor::Input::Failed { socket, error } => format!("{socket}: {error}"),
                monitor::Input::RequestCheck => "a check is requested".to_owned(),
                monitor::Input::ApplicationFailed { error, .. } => {
                    format!("a connection of the application failed: {error}")
                }
                monitor::Input::Timer => "timer".to_owned(),
                monitor::Input::Close => "close".to_owned(),
            };
            format!("monitor of {server}: {what}")
        });
    }
}

/// A line each.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().flatten().try_for_each(|line| write!(f, "\n  {line}"))
    }
}
