//! What the pools that Cenote is compared with have in common: the few inputs and actions of a study
//! without trouble.

use cenote_core::pool::{Action, ConnId, Input};

use super::fleet::{Ask, Modelled, Opened};

/// An input that they support.
pub(super) enum Supported {
    Ready,
    Request(Ask),
    Established(ConnId, Opened),
    CheckedIn(ConnId, Opened),
}

impl Supported {
    /// # Panics
    ///
    /// For any other input.
    pub(super) fn of(input: &Input<Modelled>) -> Self {
        match *input {
            Input::Ready => Self::Ready,
            Input::CheckOutRequested { waiter, .. } => Self::Request(waiter),
            Input::EstablishSucceeded { id, conn } => Self::Established(id, conn),
            Input::CheckedIn { id, conn, .. } => Self::CheckedIn(id, conn),
            Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::EstablishFailed { .. }
            | Input::IdleClosedByPeer { .. }
            | Input::DrainSucceeded { .. }
            | Input::DrainFailed { .. }
            | Input::DrainProgress { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork
            | Input::Clear { .. }
            | Input::SetOptions { .. } => panic!("not supported by this pool: {}", input.name()),
        }
    }
}

/// Starts connection `number`, which belongs to no request.
pub(super) fn start_establish(number: u64) -> Action<Modelled> {
    let id = ConnId::from_parts(number, 0);
    Action::StartEstablish { id, owner: None, deadline: None, generation: 0 }
}
