//! What a client wants done: actions, pulled one by one.

use std::ffi::c_char;
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::SelectionError;
use cenote_core::client::machine::{Chosen, Event, PoolChange};
use cenote_core::error::ConnectionError;
use cenote_core::log::LogRecord;
use cenote_core::topology::ServerId;
use cenote_core::{monitor, topology};

use super::{Client, Inner, Key, with};
use crate::action::nanos;
use crate::cause::{Cause, SharedCause};
use crate::pointer::{Out, Text, sized, sized_struct};
use crate::pool::HandleWord;
use crate::status::{Failure, Status, call};
use crate::text::{TextKind, json};

/// What the driver has to do for a client. Actions are performed in the order in which they are pulled.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ClientActionKind {
    /// Nothing is left to do.
    None = 0,
    /// Make the pool of `server`, whose address `cenote_client_action_text` has: by `cenote_pool_new_ready` if `is_ready`, which
    /// it is behind a load balancer, or else by `cenote_pool_new`.
    OpenPool = 1,
    /// Call `cenote_ready` with the pool of `server`.
    ReadyPool = 2,
    /// Call `cenote_clear` with the pool of `server`, the cause of `cenote_client_action_cause`, `interrupt`, and `service` if
    /// `has_service`.
    ClearPool = 3,
    /// Close the pool of `server`, which was removed, and free it when all of its connections are closed.
    ClosePool = 4,
    /// Connect monitoring `socket` to `server`, by TLS if the connection string says so; then
    /// `cenote_client_connected` or `cenote_client_socket_failed`. The library counts `connectTimeoutMS`.
    OpenSocket = 5,
    /// Write the `length` bytes of `cenote_client_action_bytes` to monitoring `socket`, all of them, and give what comes back to
    /// `cenote_client_received`.
    Send = 6,
    /// Close monitoring `socket`, and forget it. Comes once for each that was to be opened, also after a failure.
    CloseSocket = 7,
    /// Wake `waiter`: with `server`, or `second` if that is not 0 and its pool has fewer connections in use; or with an error,
    /// if `server` is 0, whose message `cenote_client_action_text` has. Where `CENOTE_CLIENT_ACTION_KIND_CLOSE_POOL` comes later,
    /// the client has no such server any more, but its pool is still the driver's.
    Deliver = 8,
    /// Notify subscribers of the `event`, in this place of the order; log it (`CENOTE_TEXT_KIND_LOG`).
    EmitEvent = 9,
    /// The least `duration` of a round trip to `server` is another one: what a driver subtracts for `maxTimeMS`.
    MinRoundTrip = 10,
}

/// The events of SDAM, and those of its monitors.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ClientEventKind {
    /// The action is none.
    None = 0,
    /// The first event.
    TopologyOpening = 1,
    /// Something else is known of the deployment: `CENOTE_TEXT_KIND_MESSAGE`.
    TopologyDescriptionChanged = 2,
    /// The last event.
    TopologyClosed = 3,
    /// A server belongs to the deployment now. Events about servers that are no heartbeats name theirs by
    /// `CENOTE_TEXT_KIND_ADDRESS`, as `server` is 0.
    ServerOpening = 4,
    /// Something else is known of a server: `CENOTE_TEXT_KIND_MESSAGE`.
    ServerDescriptionChanged = 5,
    /// A server belongs to the deployment no longer.
    ServerClosed = 6,
    /// A check of `server` begins, on `socket`.
    HeartbeatStarted = 7,
    /// It succeeded, after `duration`.
    HeartbeatSucceeded = 8,
    /// It failed, after `duration`; the action has a cause.
    HeartbeatFailed = 9,
}

/// An action of a client. Fields that an action does not have are 0. Times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ClientAction {
    /// `sizeof(cenote_client_action)`; to be set before the call.
    pub size: u32,
    /// A `cenote_client_action_kind`.
    pub kind: u32,
    /// How many actions are left after this one.
    pub remaining: u32,
    /// A `cenote_client_event_kind`.
    pub event: u32,
    /// The number of a server, from 1. No other server of the client ever has it.
    pub server: u64,
    /// The number of a monitoring socket, from 1. Each server counts its own.
    pub socket: u64,
    /// Another server that fits.
    pub second: u64,
    /// The waiter of the request, as it came with `cenote_client_select`.
    pub waiter: HandleWord,
    /// How long something took.
    pub duration: u64,
    /// How many bytes `cenote_client_action_bytes` has.
    pub length: usize,
    /// The service behind the load balancer, if `has_service`.
    pub service: [u8; 12],
    /// Whether `service` is one.
    pub has_service: bool,
    /// Whether connections in use are interrupted.
    pub interrupt: bool,
    /// Whether the pool is ready from the start.
    pub is_ready: bool,
    /// Whether `cenote_client_action_cause` has a cause.
    pub has_cause: bool,
    /// Whether no server was found in time: what a driver with `timeoutMS` raises as its timeout error.
    pub is_timeout: bool,
    /// 0, for later versions.
    pub reserved: [u8; 31],
}

sized_struct!(ClientAction, "cenote_client_action", default);

/// What the last action tells besides its numbers.
pub(super) enum ClientRecord {
    Nothing,
    Address(Arc<ServerAddress>),
    Bytes(Vec<u8>),
    Cause(ConnectionError),
    Failure(SelectionError),
    Event(Event),
}

impl ClientAction {
    pub(super) fn about(kind: ClientActionKind, server: ServerId) -> Self {
        Self { kind: kind as u32, server: server.0, ..Self::default() }
    }

    pub(super) fn of_socket(kind: ClientActionKind, (server, socket): Key) -> Self {
        Self { socket: socket.0, ..Self::about(kind, server) }
    }

    pub(super) fn of_bytes(key: Key, bytes: Vec<u8>) -> (Self, ClientRecord) {
        let length = bytes.len();
        let action = Self { length, ..Self::of_socket(ClientActionKind::Send, key) };
        (action, ClientRecord::Bytes(bytes))
    }

    pub(super) fn of_change(server: ServerId, change: PoolChange) -> (Self, ClientRecord) {
        use ClientActionKind as Kind;

        match change {
            PoolChange::Ready => (Self::about(Kind::ReadyPool, server), ClientRecord::Nothing),
            PoolChange::Clear { cause, interrupt, service } => {
                let action = Self {
                    interrupt,
                    has_service: service.is_some(),
                    service: service.map_or([0; 12], |service| service.0),
                    has_cause: true,
                    ..Self::about(Kind::ClearPool, server)
                };
                (action, ClientRecord::Cause(cause))
            }
            PoolChange::MinRoundTrip(round_trip) => {
                let duration = nanos(round_trip);
                let action = Self { duration, ..Self::about(Kind::MinRoundTrip, server) };
                (action, ClientRecord::Nothing)
            }
        }
    }

    pub(super) fn of_server(waiter: HandleWord, chosen: Chosen) -> Self {
        let second = chosen.second.map_or(0, |second| second.0);
        Self { waiter, second, ..Self::about(ClientActionKind::Deliver, chosen.first) }
    }

    pub(super) fn of_failure(waiter: HandleWord, error: SelectionError) -> (Self, ClientRecord) {
        let kind = ClientActionKind::Deliver as u32;
        let is_timeout = matches!(error, SelectionError::TimedOut { .. });
        (Self { kind, waiter, is_timeout, ..Self::default() }, ClientRecord::Failure(error))
    }

    /// `None` for what subscribers are not told.
    pub(super) fn of_event(event: Event) -> Option<(Self, ClientRecord)> {
        use ClientEventKind as Kind;

        let mut action = Self { kind: ClientActionKind::EmitEvent as u32, ..Self::default() };
        let kind = match &event {
            Event::Topology(event) => match event {
                topology::Event::TopologyOpening => Kind::TopologyOpening,
                topology::Event::TopologyDescriptionChanged { .. } => {
                    Kind::TopologyDescriptionChanged
                }
                topology::Event::TopologyClosed => Kind::TopologyClosed,
                topology::Event::ServerOpening { .. } => Kind::ServerOpening,
                topology::Event::ServerDescriptionChanged { .. } => Kind::ServerDescriptionChanged,
                topology::Event::ServerClosed { .. } => Kind::ServerClosed,
                // One that this library has no number for.
                _ => return None,
            },
            Event::Heartbeat { server, event, .. } => {
                action.server = server.0;
                action.set_heartbeat(event)?
            }
            Event::ToTopology(_) => return None,
        };
        action.event = kind as u32;
        Some((action, ClientRecord::Event(event)))
    }

    fn set_heartbeat(&mut self, event: &monitor::Event) -> Option<ClientEventKind> {
        let (kind, socket, duration) = match event {
            monitor::Event::ServerHeartbeatStarted { socket, .. } => {
                (ClientEventKind::HeartbeatStarted, *socket, None)
            }
            monitor::Event::ServerHeartbeatSucceeded { socket, duration, .. } => {
                (ClientEventKind::HeartbeatSucceeded, *socket, Some(*duration))
            }
            monitor::Event::ServerHeartbeatFailed { socket, duration, .. } => {
                self.has_cause = true;
                (ClientEventKind::HeartbeatFailed, *socket, Some(*duration))
            }
            // The topology tells of a change.
            monitor::Event::ServerDescriptionChanged { .. } | _ => return None,
        };
        (self.socket, self.duration) = (socket.0, duration.map_or(0, nanos));
        Some(kind)
    }
}

/// Pulls the next action of a client; its kind is `CENOTE_CLIENT_ACTION_KIND_NONE` if there is none. Its texts, bytes and cause
/// can be had until the next one is pulled.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_next_action(
    client: *mut Client,
    action: *mut ClientAction,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::new(action)? };
        let action = with(client, |inner| {
            let Some((mut action, record)) = inner.actions.pop_front() else { return Ok(sized()) };
            inner.last_action = record;
            action.remaining = u32::try_from(inner.actions.len()).unwrap_or(u32::MAX);
            Ok(action)
        })?;
        out.write(action);
        Ok(())
    })
}

/// The bytes of the action `CENOTE_CLIENT_ACTION_KIND_SEND` that was pulled last. With less room than they need, nothing is
/// written, and the call returns `CENOTE_STATUS_TRUNCATED`; `length` gets their number in any case.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_action_bytes(
    client: *mut Client,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer.cast(), capacity, length) };
        with(client, |inner| {
            let ClientRecord::Bytes(bytes) = &inner.last_action else {
                return Err(Failure::new(Status::Nothing, "the last action has no bytes"));
            };
            target.copy(bytes)
        })
    })
}

/// The cause in the action that was pulled last, as a reference of the caller: to be released.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_action_cause(
    client: *mut Client,
    cause: *mut *mut Cause,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::plain(cause, "the cause")? };
        let error = with(client, |inner| {
            let none = || Failure::new(Status::Nothing, "the last action has no cause");
            inner.last_action.cause().cloned().ok_or_else(none)
        })?;
        out.write(SharedCause::new(error, 0).handle()?);
        Ok(())
    })
}

/// A text of the action that was pulled last; `kind` is a `cenote_text_kind`. `CENOTE_TEXT_KIND_ADDRESS` is where its server is,
/// also of an event about one; `CENOTE_TEXT_KIND_MESSAGE` why there is no server, a cause, or what is known since a description has
/// changed. Events have `CENOTE_TEXT_KIND_EVENT`, and all but a change of one server `CENOTE_TEXT_KIND_LOG` and
/// `CENOTE_TEXT_KIND_LOG_JSON`. Without such a text the call returns `CENOTE_STATUS_NOTHING`. For the rest see
/// `cenote_last_error`.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_action_text(
    client: *mut Client,
    kind: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer, capacity, length) };
        let kind = TextKind::of(kind)?;
        target.write(&with(client, |inner| {
            inner.last_action.text(kind, inner).ok_or_else(|| kind.missing())
        })?)
    })
}

impl ClientRecord {
    fn cause(&self) -> Option<&ConnectionError> {
        match self {
            Self::Cause(cause) => Some(cause),
            Self::Event(Event::Heartbeat {
                event: monitor::Event::ServerHeartbeatFailed { error, .. },
                ..
            }) => Some(error),
            Self::Nothing
            | Self::Address(_)
            | Self::Bytes(_)
            | Self::Failure(_)
            | Self::Event(_) => None,
        }
    }

    fn text(&self, kind: TextKind, inner: &Inner) -> Option<String> {
        match (self, kind) {
            (Self::Address(address), TextKind::Address) => Some(address.to_string()),
            (Self::Failure(error), TextKind::Message) => Some(error.to_string()),
            (Self::Event(event), TextKind::Address) => address_of(event).map(ToString::to_string),
            (Self::Event(event), TextKind::Event) => name_of(event).map(str::to_owned),
            (Self::Event(event), TextKind::Log) => log(event, inner).map(|it| it.to_string()),
            (Self::Event(event), TextKind::LogJson) => log(event, inner).map(|it| json(&it)),
            (Self::Event(Event::Topology(event)), TextKind::Message) => news_of(event),
            (record, TextKind::Message) => record.cause().map(ToString::to_string),
            _ => None,
        }
    }
}

fn address_of(event: &Event) -> Option<&ServerAddress> {
    match event {
        Event::Topology(
            topology::Event::ServerOpening { address }
            | topology::Event::ServerDescriptionChanged { address, .. }
            | topology::Event::ServerClosed { address },
        )
        | Event::Heartbeat { address, .. } => Some(address),
        Event::Topology(_) | Event::ToTopology(_) => None,
    }
}

const fn name_of(event: &Event) -> Option<&'static str> {
    match event {
        Event::Topology(event) => Some(event.name()),
        Event::Heartbeat { event, .. } => Some(event.name()),
        Event::ToTopology(_) => None,
    }
}

/// What is known now.
fn news_of(event: &topology::Event) -> Option<String> {
    if let topology::Event::TopologyDescriptionChanged { new, .. } = event {
        return Some(new.to_string());
    }
    let topology::Event::ServerDescriptionChanged { new, .. } = event else { return None };
    Some(new.to_string())
}

fn log<'a>(event: &'a Event, inner: &'a Inner) -> Option<LogRecord<'a>> {
    match event {
        Event::Topology(event) => LogRecord::of_topology(event, &inner.topology_id),
        Event::Heartbeat { address, event, .. } => {
            LogRecord::of_heartbeat(event, address, &inner.topology_id, &inner.log)
        }
        Event::ToTopology(_) => None,
    }
}
