//! Which inputs are invalid, and why.

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Input, InvalidOptions, Maintenance, MisuseReason, PoolOptions, PoolTypes, ServiceId,
};

use super::{Connection, Model, Phase};

// SI-22, OP-06, TF-14.
pub(super) fn options(options: &PoolOptions) -> Result<(), InvalidOptions> {
    let max = options.max_pool_size.unwrap_or(100);
    let min = options.min_pool_size.unwrap_or(0);
    if min > max && max != 0 {
        return Err(InvalidOptions::MinAboveMax { min, max });
    }
    if options.max_connecting == Some(0) {
        return Err(InvalidOptions::NoConnecting);
    }
    if options.maintenance == Some(Maintenance::PauseAfterFailure(Duration::ZERO)) {
        return Err(InvalidOptions::NoPause);
    }
    Ok(())
}

type ConnectionOf<S> = Connection<<S as PoolTypes>::Conn, <S as PoolTypes>::Waiter>;

impl<S: PoolTypes> Model<S> {
    /// Checks whether the input is valid in this state. Changes nothing.
    ///
    /// # Errors
    ///
    /// The reason why it is invalid.
    pub fn judge(&self, input: &Input<S>) -> Result<(), MisuseReason> {
        match input {
            Input::CheckOutRequested { id, .. } => {
                if let Some(last) = self.last_waiter.filter(|last| *id <= *last) {
                    return Err(MisuseReason::WaiterIdNotIncreasing { id: *id, last });
                }
                Ok(())
            }
            Input::CheckedIn { id, .. } => self.judge_check_in(*id),
            Input::Repurposed { id, .. } => self.judge_in_use(*id),
            Input::Handshaken { id, service, clears_at_hello } => {
                self.judge_service(*id, *service)?;
                self.judge_clears(*id, *clears_at_hello)?;
                self.judge_hello(*id)
            }
            Input::EstablishSucceeded { id, .. } => self.judge_established(*id),
            Input::EstablishFailed { id, .. } => self.judge_answer(*id),
            Input::IdleClosedByPeer { id, .. } => self.judge_closed_by_peer(*id),
            Input::DrainSucceeded { id, .. }
            | Input::DrainFailed { id, .. }
            | Input::DrainProgress { id } => self.judge_drain(*id),
            Input::Clear { interrupt, service, .. } => self.judge_clear(*interrupt, *service),
            Input::SetOptions { options: new } => {
                options(new).map_err(MisuseReason::InvalidOptions)?;
                if new.load_balanced.unwrap_or(false) != self.load_balanced() {
                    return Err(MisuseReason::LoadBalancedIsFixed);
                }
                Ok(())
            }
            Input::CheckOutCancelled { .. }
            | Input::RetireConnections
            | Input::ReleaseIdle
            | Input::Ready
            | Input::Close
            | Input::Timer
            | Input::ResetAfterFork => Ok(()),
        }
    }

    // IN-02, IN-09; connections that the parent process had checked out may be checked in.
    fn judge_check_in(&self, id: ConnId) -> Result<(), MisuseReason> {
        if self.look_up(id)?.is_none() && id.number() <= self.inherited {
            return Ok(());
        }
        self.judge_in_use(id)
    }

    fn judge_in_use(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.look_up(id)?.map(|connection| &connection.phase) {
            Some(Phase::InUse { .. }) => Ok(()),
            Some(_) | None => Err(MisuseReason::NotInUse { id }),
        }
    }

    // LB-03, LB-12.
    fn judge_service(&self, id: ConnId, service: Option<ServiceId>) -> Result<(), MisuseReason> {
        if self.load_balanced() && service.is_none() {
            return Err(MisuseReason::ServiceMissing { id });
        }
        if !self.load_balanced() && service.is_some() {
            return Err(MisuseReason::ServiceUnexpected { id });
        }
        Ok(())
    }

    fn judge_clears(&self, id: ConnId, seen: Option<u64>) -> Result<(), MisuseReason> {
        let counted = self.service_clears();
        match seen {
            Some(seen) if seen > counted => {
                Err(MisuseReason::ClearsNotReached { id, seen, counted })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn judge_hello(&self, id: ConnId) -> Result<(), MisuseReason> {
        self.judge_answer(id)?;
        match self.look_up(id)?.map(|connection| &connection.phase) {
            Some(Phase::Pending { handshaken: true, .. }) => {
                Err(MisuseReason::HandshakenTwice { id })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn judge_established(&self, id: ConnId) -> Result<(), MisuseReason> {
        self.judge_answer(id)?;
        match self.look_up(id)? {
            Some(connection) if self.load_balanced() && connection.service.is_none() => {
                Err(MisuseReason::ServiceMissing { id })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An answer to StartEstablish; for a closed connection, it is late and valid.
    fn judge_answer(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.look_up(id)?.map(|connection| &connection.phase) {
            Some(Phase::Pending { .. }) | None => Ok(()),
            Some(_) => Err(MisuseReason::NotPending { id }),
        }
    }

    /// An answer to StartDrain; for a closed connection, it is late and valid.
    fn judge_drain(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.look_up(id)?.map(|connection| &connection.phase) {
            Some(Phase::Draining { .. }) | None => Ok(()),
            Some(_) => Err(MisuseReason::NotDraining { id }),
        }
    }

    fn judge_closed_by_peer(&self, id: ConnId) -> Result<(), MisuseReason> {
        match self.look_up(id)?.map(|connection| &connection.phase) {
            Some(Phase::Pending { .. }) => Err(MisuseReason::StillPending { id }),
            Some(_) | None => Ok(()),
        }
    }

    // CLX-01, SI-21.
    fn judge_clear(&self, interrupt: bool, service: Option<ServiceId>) -> Result<(), MisuseReason> {
        if self.load_balanced() && service.is_none() {
            return Err(MisuseReason::ClearNeedsService);
        }
        if !self.load_balanced() && service.is_some() {
            return Err(MisuseReason::ClearTakesNoService);
        }
        if service.is_some() && interrupt {
            return Err(MisuseReason::ClearByServiceInterrupts);
        }
        Ok(())
    }

    /// The connection, or `None` if it is closed. A number that was never used is foreign.
    fn look_up(&self, id: ConnId) -> Result<Option<&ConnectionOf<S>>, MisuseReason> {
        if id.number() == 0 || id.number() > self.created {
            return Err(MisuseReason::ForeignConnection { id });
        }
        Ok(self.connections.iter().find(|connection| connection.id == id))
    }
}
