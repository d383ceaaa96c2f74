use super::{StateChange, TopologyVersion};
use crate::error::{CommandError, ConnectionError, Stage};
use crate::pool::{Input, PoolTypes, ServiceId};

/// What SDAM has to know besides the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Whether the client was told `loadBalanced=true`.
    pub load_balanced: bool,
    /// Whether the failed connection has the generation that its pool has now, or behind a load
    /// balancer the generation of its service. Compare before the pool is cleared.
    pub current_generation: bool,
    /// The topology version in the server's current description.
    pub topology_version: Option<TopologyVersion>,
}

/// What an error changes. The default is nothing at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Verdict {
    /// What becomes of the server's description. To be done first.
    pub server: ServerVerdict,
    /// What becomes of the server's pool.
    pub pool: PoolVerdict,
    /// What becomes of the server's monitor.
    pub check: Check,
}

/// What an error changes in the description of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerVerdict {
    /// Nothing.
    #[default]
    Keep,
    /// Its type becomes Unknown.
    Unknown {
        /// The topology version of the new description: the error's own when the server spoke
        /// of a change of its state, otherwise none.
        topology_version: Option<TopologyVersion>,
    },
}

/// What an error does to the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolVerdict {
    /// Nothing.
    #[default]
    Keep,
    /// Clear the pool.
    Clear {
        /// Break the connections in use as well: only after a monitor's timeout.
        interrupt: bool,
    },
    /// Behind a load balancer: clear what belongs to the service of the failed connection.
    ClearService,
}

impl PoolVerdict {
    /// The input for the pool, if there is anything to do. `service` is that of the failed
    /// connection ([`PoolState::service_of`](crate::pool::PoolState::service_of)), and only counts
    /// behind a load balancer.
    ///
    /// ```
    /// use cenote_core::pool::{Input, NoPayload};
    /// use cenote_core::sdam::PoolVerdict;
    ///
    /// let clear = PoolVerdict::Clear { interrupt: true }.into_input::<NoPayload>((), None);
    /// assert_eq!(clear, Some(Input::Clear { cause: (), interrupt: true, service: None }));
    /// assert_eq!(PoolVerdict::Keep.into_input::<NoPayload>((), None), None);
    /// ```
    pub fn into_input<S: PoolTypes>(
        self,
        cause: S::Cause,
        service: Option<ServiceId>,
    ) -> Option<Input<S>> {
        match self {
            Self::Keep => None,
            Self::Clear { interrupt } => Some(Input::Clear { cause, interrupt, service: None }),
            Self::ClearService => Some(Input::Clear { cause, interrupt: false, service }),
        }
    }
}

/// What an error does to the monitor of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Nothing: the next check comes when it is due.
    #[default]
    Keep,
    /// Check at once: the server answers, and this side is wrong about it.
    Request,
    /// Cancel the check in progress and close the monitor's connection: it hangs on the same broken
    /// network.
    Cancel,
}

/// Judges the failure of an application's connection, in use or still being established;
/// connections that the pool opens by itself count the same.
///
/// In this order: an error of another generation or an older topology version changes nothing, nor
/// does one that may be overload or a shortage in this process. Behind a load balancer the server is never Unknown, and before
/// hello ends nothing happens at all.
// PO-04, PO-13, ER-11, ER-34, SD-20, SD-21, SD-22, SD-54, LB-20, LB-22, T-65
pub fn verdict(context: &Context, error: &ConnectionError) -> Verdict {
    if is_stale(context, error) || error.is_overload() || error.is_local() {
        return Verdict::default();
    }
    if context.load_balanced {
        return load_balanced_verdict(error);
    }
    if error.stage().is_establishing() {
        return establishment_verdict(error);
    }
    operation_verdict(error)
}

/// Judges a failed check of the server by its monitor: the server is Unknown and its pool is
/// cleared, after a timeout together with the connections in use.
///
/// Labels do not matter here, whatever the stage. A shortage in this process changes nothing: the
/// server was not asked. Errors of the connection that only measures
/// round-trip times must not be brought here.
// INT-08, SD-40, SD-41, SD-42
pub fn monitor_verdict(error: &ConnectionError) -> Verdict {
    if error.is_local() {
        return Verdict::default();
    }
    Verdict {
        server: ServerVerdict::Unknown { topology_version: None },
        pool: PoolVerdict::Clear { interrupt: error.is_network_error() && error.is_timeout() },
        check: Check::Keep,
    }
}

// CO-18, CLB-07, SD-31
fn is_stale(context: &Context, error: &ConnectionError) -> bool {
    let Some(current) = &context.topology_version else {
        return !context.current_generation;
    };
    let reported = error.command_error().and_then(|reply| reply.topology_version.as_ref());
    !context.current_generation || current.makes_error_stale(reported)
}

/// There is no monitor and no other description than "load balancer"; only the connections of one
/// service can be dropped.
// LB-20, LB-21, LB-22
fn load_balanced_verdict(error: &ConnectionError) -> Verdict {
    let stage = error.stage();
    let clears = !stage.is_before_hello_ends()
        && (stage == Stage::Authentication || breaks_connections(error));
    let pool = if clears { PoolVerdict::ClearService } else { PoolVerdict::Keep };
    Verdict { pool, ..Verdict::default() }
}

/// Every unlabelled failure to establish a connection, whatever its kind, tells that new
/// connections cannot be had.
// PO-12, ER-35, SD-23, SD-24, AU-03
fn establishment_verdict(error: &ConnectionError) -> Verdict {
    Verdict {
        server: ServerVerdict::Unknown { topology_version: reported_version(error) },
        pool: PoolVerdict::Clear { interrupt: false },
        check: check_after(error),
    }
}

/// A timeout may be a slow operation, and most refusals are about the operation.
// SD-25
fn operation_verdict(error: &ConnectionError) -> Verdict {
    let changed = state_change(error).is_some();
    if !changed && !breaks_connections(error) {
        return Verdict::default();
    }
    let clear = PoolVerdict::Clear { interrupt: false };
    Verdict {
        server: ServerVerdict::Unknown { topology_version: reported_version(error) },
        pool: if breaks_connections(error) { clear } else { PoolVerdict::Keep },
        check: check_after(error),
    }
}

/// Whether an error in use is a sign that the other connections are broken too: a network error
/// other than a timeout, or a server that shuts down.
// SD-25, SD-26, SD-29, LN-05
fn breaks_connections(error: &ConnectionError) -> bool {
    let is_network_failure = error.is_network_error() && !error.is_timeout();
    is_network_failure || state_change(error) == Some(StateChange::NodeIsShuttingDown)
}

/// What to do with the monitor once the server is Unknown.
// SD-27, SD-28
fn check_after(error: &ConnectionError) -> Check {
    if error.is_network_error() {
        return Check::Cancel;
    }
    if state_change(error).is_some() { Check::Request } else { Check::Keep }
}

fn reported_version(error: &ConnectionError) -> Option<TopologyVersion> {
    let reply = error.command_error().filter(|reply| StateChange::of(reply).is_some());
    reply.and_then(|reply| reply.topology_version)
}

fn state_change(error: &ConnectionError) -> Option<StateChange> {
    error.command_error().and_then(|reply: &CommandError| StateChange::of(reply))
}
