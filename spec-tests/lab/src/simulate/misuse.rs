//! Misuse of the pool by its embedder: invalid inputs, each of which has to be refused.

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Health, Input, InvalidOptions, Maintenance, PoolOptions, Purpose, WaiterId,
};

use super::accounting::{Accounting, SocketState};
use crate::lockstep::{self, Tagged};
use cenote_replay::random::SplitMix;

/// The payload, and the cause, of an invalid input.
const WRONG: u64 = u64::MAX;

/// An invalid input, if one is possible in the present state.
pub(super) fn misuse(
    accounting: &Accounting,
    is_balanced: bool,
    random: &mut SplitMix,
) -> Option<Input<Tagged>> {
    let kind = random.below(15);
    let wanted: fn(SocketState) -> bool = match kind {
        0 => is_idle,
        1 | 12 => is_opening,
        3 | 4 => |state| is_idle(state) || is_used(state),
        10 => |state| state == SocketState::Opening { is_greeted: false },
        11 => |state| state == SocketState::Opening { is_greeted: true },
        13 => |state| is_idle(state) || is_used(state) || is_opening(state),
        14 => |state| is_idle(state) || is_opening(state),
        _ => |_| true,
    };
    let ids: Vec<_> = accounting.sockets().filter(|it| wanted(it.state)).map(|it| it.id).collect();
    let mut id = || random.pick(&ids);
    let service = |is_given: bool| is_given.then(|| lockstep::service(1));
    Some(match kind {
        0 | 1 => Input::CheckedIn { id: id()?, conn: WRONG, health: Health::Healthy },
        2 => {
            let unknown = ConnId::from_parts(accounting.last_connection() + 1, 0);
            Input::CheckedIn { id: unknown, conn: WRONG, health: Health::Errored(WRONG) }
        }
        3 => Input::EstablishSucceeded { id: id()?, conn: WRONG },
        4 => Input::EstablishFailed { id: id()?, cause: WRONG, overloaded: random.flip() },
        5 => {
            let id = Some(accounting.last_request()).filter(|&id| id != WaiterId(0))?;
            let purpose = Purpose::Other;
            Input::CheckOutRequested { id, waiter: WRONG, deadline: None, purpose }
        }
        // The kind of clear that this kind of pool does not support.
        6 => Input::Clear { cause: WRONG, interrupt: false, service: service(!is_balanced) },
        7 if is_balanced => Input::Clear { cause: WRONG, interrupt: true, service: service(true) },
        7 => return None,
        8 => Input::SetOptions { options: Box::new(unusable_options()) },
        9 => {
            let options = PoolOptions::default().with_load_balanced(!is_balanced);
            Input::SetOptions { options: Box::new(options) }
        }
        10 => {
            Input::Handshaken { id: id()?, service: service(!is_balanced), clears_at_hello: None }
        }
        11 => Input::Handshaken { id: id()?, service: service(is_balanced), clears_at_hello: None },
        // A pending connection cannot be closed as an idle one.
        12 => Input::IdleClosedByPeer { id: id()?, cause: WRONG },
        13 => {
            let id = id()?;
            if random.flip() {
                Input::DrainProgress { id }
            } else {
                Input::DrainSucceeded { id, conn: WRONG }
            }
        }
        _ => Input::Repurposed { id: id()?, purpose: Purpose::Cursor },
    })
}

fn is_idle(state: SocketState) -> bool {
    state == SocketState::Idle
}

fn is_used(state: SocketState) -> bool {
    matches!(state, SocketState::Used { .. })
}

fn is_opening(state: SocketState) -> bool {
    matches!(state, SocketState::Opening { .. })
}

fn unusable_options() -> PoolOptions {
    let options =
        PoolOptions::default().with_maintenance(Maintenance::PauseAfterFailure(Duration::ZERO));
    debug_assert_eq!(options.validate(), Err(InvalidOptions::NoPause));
    options
}
