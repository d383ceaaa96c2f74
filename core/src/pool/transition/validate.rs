//! Which inputs make sense in which state: the preconditions of every transition, in one place.
//!
//! They are looked at before anything changes, so that a refused input leaves no trace.

use crate::pool::id::{ConnId, ServiceId};
use crate::pool::input::Input;
use crate::pool::misuse::MisuseReason;
use crate::pool::options::{PoolOptions, Settings};
use crate::pool::state::PoolState;
use crate::pool::state::connections::{ConnState, Connection};
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    #[inline(always)]
    pub(crate) fn validate(&self, input: &Input<S>) -> Result<(), MisuseReason> {
        match input {
            Input::CheckOutRequested { id, .. } => match self.last_waiter {
                Some(last) if *id <= last => {
                    Err(MisuseReason::WaiterIdNotIncreasing { id: *id, last })
                }
                Some(_) | None => Ok(()),
            },
            Input::CheckedIn { id, .. } => self.validate_check_in(*id),
            Input::Repurposed { id, .. } => self.validate_in_use(*id),
            Input::Handshaken { id, service, clears_at_hello } => {
                self.validate_handshaken(*id, *service, *clears_at_hello)
            }
            Input::EstablishSucceeded { id, .. } => self.validate_established(*id),
            Input::EstablishFailed { id, .. } => self.validate_answer(*id).map(drop),
            Input::IdleClosedByPeer { id, .. } => self.validate_idle_closed(*id),
            Input::DrainSucceeded { id, .. }
            | Input::DrainFailed { id, .. }
            | Input::DrainProgress { id } => self.validate_draining(*id),
            Input::Clear { interrupt, service, .. } => self.validate_clear(*interrupt, *service),
            Input::SetOptions { options } => self.validate_options(options),
            Input::CheckOutCancelled { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Ready
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork => Ok(()),
        }
    }

    /// A connection from before a fork is no longer counted but may come back.
    // IN-02
    #[inline]
    fn validate_check_in(&self, id: ConnId) -> Result<(), MisuseReason> {
        if self.is_inherited(id) { Ok(()) } else { self.validate_in_use(id) }
    }

    // CO-02, IN-09
    #[inline]
    fn validate_in_use(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.known_or_closed(id)? {
            Some(Connection { state: ConnState::InUse { .. }, .. }) => Ok(()),
            Some(_) | None => Err(MisuseReason::NotInUse { id }),
        }
    }

    fn validate_handshaken(
        &self,
        id: ConnId,
        service: Option<ServiceId>,
        clears_at_hello: Option<u64>,
    ) -> Result<(), MisuseReason> {
        match (self.settings.load_balanced, service) {
            (true, None) => return Err(MisuseReason::ServiceMissing { id }),
            (false, Some(_)) => return Err(MisuseReason::ServiceUnexpected { id }),
            (true, Some(_)) | (false, None) => {}
        }
        let counted = self.services.clears();
        if let Some(seen) = clears_at_hello.filter(|&seen| seen > counted) {
            return Err(MisuseReason::ClearsNotReached { id, seen, counted });
        }
        match self.validate_answer(id)? {
            Some(Connection { state: ConnState::Pending { handshaken: true, .. }, .. }) => {
                Err(MisuseReason::HandshakenTwice { id })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn validate_established(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.validate_answer(id)? {
            Some(connection) if self.settings.load_balanced && connection.service.is_none() => {
                Err(MisuseReason::ServiceMissing { id })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An answer is for a pending connection, or late for one that was aborted.
    fn validate_answer(&self, id: ConnId) -> Result<Option<&Connection<S::Conn>>, MisuseReason> {
        match self.known_or_closed(id)? {
            Some(connection) if !matches!(connection.state, ConnState::Pending { .. }) => {
                Err(MisuseReason::NotPending { id })
            }
            found => Ok(found),
        }
    }

    /// An answer is for a draining connection, or late for one that was aborted.
    fn validate_draining(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.known_or_closed(id)? {
            Some(Connection { state: ConnState::Draining { .. }, .. }) | None => Ok(()),
            Some(_) => Err(MisuseReason::NotDraining { id }),
        }
    }

    fn validate_idle_closed(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.known_or_closed(id)? {
            Some(Connection { state: ConnState::Pending { .. }, .. }) => {
                Err(MisuseReason::StillPending { id })
            }
            Some(_) | None => Ok(()),
        }
    }

    // CLX-01, SI-21
    fn validate_clear(
        &self,
        interrupt: bool,
        service: Option<ServiceId>,
    ) -> Result<(), MisuseReason> {
        match (self.settings.load_balanced, service) {
            (true, None) => Err(MisuseReason::ClearNeedsService),
            (false, Some(_)) => Err(MisuseReason::ClearTakesNoService),
            (true, Some(_)) if interrupt => Err(MisuseReason::ClearByServiceInterrupts),
            (true, Some(_)) | (false, None) => Ok(()),
        }
    }

    fn validate_options(&self, options: &PoolOptions) -> Result<(), MisuseReason> {
        let settings = Settings::new(options).map_err(MisuseReason::InvalidOptions)?;
        if settings.load_balanced != self.settings.load_balanced {
            return Err(MisuseReason::LoadBalancedIsFixed);
        }
        Ok(())
    }

    /// The connection, or `None` when it was closed before; an id that was never given out is
    /// foreign.
    // CO-03
    #[inline]
    fn known_or_closed(&self, id: ConnId) -> Result<Option<&Connection<S::Conn>>, MisuseReason> {
        let connection = self.connections.get(id);
        if connection.is_none() && !(1..=self.connections.last_number()).contains(&id.number()) {
            return Err(MisuseReason::ForeignConnection { id });
        }
        Ok(connection)
    }

    /// Whether a connection was made before a fork; all of those are closed.
    pub(super) fn is_inherited(&self, id: ConnId) -> bool {
        (1..=self.inherited).contains(&id.number())
    }
}
