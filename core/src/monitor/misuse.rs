//! Which inputs make sense, looked at before anything changes.

use thiserror::Error;

use super::check::Check;
use super::measure::Measure;
use super::{Input, Monitor, SocketId};

/// An input that breaks the contract. Nothing has changed, and nothing was emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misuse {
    /// A socket that was never opened.
    #[error("{0} was never asked for: use the number that came with `Open`")]
    UnknownSocket(SocketId),
    /// It is open.
    #[error("{0} is open already: each `Open` is answered once")]
    AlreadyOpen(SocketId),
    /// Nothing was sent, or everything is answered.
    #[error(
        "{0} has nothing to reply to: close a connection that speaks unasked, and feed `Failed`"
    )]
    NothingAsked(SocketId),
}

/// What is told of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketInput {
    Opened,
    Replied,
    Failed,
}

/// The state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Opening,
    Asked,
    Idle,
}

impl Monitor {
    /// `Ok(false)` is for inputs to ignore.
    pub(super) fn permit(&self, input: &Input) -> Result<bool, Misuse> {
        match input {
            Input::Opened { socket, .. } => self.permit_socket(*socket, SocketInput::Opened),
            Input::Replied { socket, .. } => self.permit_socket(*socket, SocketInput::Replied),
            Input::Failed { socket, .. } => self.permit_socket(*socket, SocketInput::Failed),
            Input::RequestCheck | Input::ApplicationFailed { .. } | Input::Timer | Input::Close => {
                Ok(!self.is_closed)
            }
        }
    }

    /// The same for what is told of a socket.
    pub(crate) fn permit_socket(
        &self,
        socket: SocketId,
        input: SocketInput,
    ) -> Result<bool, Misuse> {
        if self.is_closed {
            return Ok(false);
        }
        if socket.0 == 0 || socket > self.last_socket {
            return Err(Misuse::UnknownSocket(socket));
        }
        let Some(doing) = self.doing(socket) else { return Ok(false) };
        match (input, doing) {
            (SocketInput::Opened, Doing::Asked | Doing::Idle) => Err(Misuse::AlreadyOpen(socket)),
            (SocketInput::Replied, Doing::Opening | Doing::Idle) => {
                Err(Misuse::NothingAsked(socket))
            }
            (SocketInput::Opened, Doing::Opening)
            | (SocketInput::Replied, Doing::Asked)
            | (SocketInput::Failed, Doing::Opening | Doing::Asked | Doing::Idle) => Ok(true),
        }
    }

    /// `None` for one that is closed.
    pub(super) fn doing(&self, socket: SocketId) -> Option<Doing> {
        let check = match &self.check {
            Check::Opening { socket, .. } => Some((*socket, Doing::Opening)),
            Check::Asking { connected, .. } => Some((connected.socket, Doing::Asked)),
            Check::Waiting { connected, .. } => {
                connected.as_ref().map(|connected| (connected.socket, Doing::Idle))
            }
        };
        let measure = match &self.measure {
            Measure::Opening { socket } => Some((*socket, Doing::Opening)),
            Measure::Asking { connected, .. } => Some((connected.socket, Doing::Asked)),
            Measure::Waiting { connected, .. } => {
                connected.as_ref().map(|connected| (connected.socket, Doing::Idle))
            }
            Measure::Off => None,
        };
        let found = check.into_iter().chain(measure).find(|(id, _)| *id == socket);
        found.map(|(_, doing)| doing)
    }
}
