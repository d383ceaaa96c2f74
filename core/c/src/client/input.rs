//! What a driver tells a client: one function for each kind of input.

use cenote_core::bson::{RawDocumentBuf, rawdoc};
use cenote_core::client::machine::{Input as CoreInput, Request, SelectionId};
use cenote_core::client::{ReadPreference, Selector as CoreSelector};
use cenote_core::error::ConnectionError;
use cenote_core::monitor::SocketId;
use cenote_core::pool::Instant;
use cenote_core::topology::ServerId;
use cenote_core::uri::ReadPreferenceMode;

use super::action::ClientAction;
use super::socket::{MonitorSocket, Received};
use super::{Client, Inner, Key, with};
use crate::cause::{Cause, SharedCause};
use crate::pointer::{Out, bytes, numbers};
use crate::pool::{self, HandleWord, NEVER, Pool};
use crate::status::{Failure, Status, call, numbered};

/// Which server an operation wants. Servers that belong to no replica set fit each of these.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum ServerSelector {
    /// As `readPreference`, its tags and `maxStalenessSeconds` in the connection string say; without them the primary.
    ReadPreference = 0,
    /// The primary: what writes need.
    Primary = 1,
    /// The primary, or else a secondary.
    PrimaryPreferred = 2,
    /// A secondary.
    Secondary = 3,
    /// A secondary, or else the primary.
    SecondaryPreferred = 4,
    /// Any member.
    Nearest = 5,
}

fn feed(
    client: *mut Client,
    now: u64,
    body: impl FnOnce(&mut Inner, Instant) -> Result<(), Failure>,
) -> Status {
    call(|| with(client, |inner| body(inner, Instant::from_nanos(now))))
}

fn feed_input(client: *mut Client, now: u64, input: CoreInput<HandleWord>) -> Status {
    feed(client, now, |inner, now| inner.handle(now, input))
}

const fn key(server: u64, socket: u64) -> Key {
    (ServerId(server), SocketId(socket))
}

/// A monitoring socket is connected, TLS included. The library says hello: `CENOTE_CLIENT_ACTION_KIND_SEND` follows. Does nothing if the socket was closed meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_connected(
    client: *mut Client,
    now: u64,
    server: u64,
    socket: u64,
) -> Status {
    feed(client, now, |inner, now| inner.connected(now, key(server, socket)))
}

/// Bytes of a monitoring socket, in any cut, as TLS has decrypted them. What is no reply to the command that was sent is a
/// failure of the socket. Does nothing if the socket was closed meanwhile.
///
/// A server may send without a pause. Read from each socket at most some 64 KB in a turn, and then the others.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_received(
    client: *mut Client,
    now: u64,
    server: u64,
    socket: u64,
    data: *const u8,
    length: usize,
) -> Status {
    feed(client, now, |inner, now| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { bytes(data, length)? };
        inner.received(now, key(server, socket), bytes)
    })
}

/// A monitoring socket could not be connected, or has failed since: the end of its stream is a failure. Does nothing if it was
/// closed meanwhile. `CENOTE_CLIENT_ACTION_KIND_CLOSE_SOCKET` follows.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_socket_failed(
    client: *mut Client,
    now: u64,
    server: u64,
    socket: u64,
    cause: *const Cause,
) -> Status {
    feed(client, now, |inner, now| {
        let error = SharedCause::of(cause)?.error().clone();
        inner.socket_failed(now, key(server, socket), error)
    })
}

/// A connection of a server's pool has failed, while it was established or in use. Perform the actions that follow, which may
/// clear the pool, and tell the pool and the caller after that. Replaces `cenote_verdict`.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_connection_failed(
    client: *mut Client,
    now: u64,
    server: u64,
    pool: *const Pool,
    connection: u64,
    cause: *const Cause,
) -> Status {
    feed(client, now, |inner, now| {
        let error = SharedCause::of(cause)?.error().clone();
        let (is_current, service) = pool::with(pool, |pool| {
            let id = pool.id(connection);
            let service = pool.machine.connections().find(|it| it.id == id);
            let service = service.and_then(|it| it.service);
            Ok((!pool.machine.is_stale(id), service))
        })?;
        let server = ServerId(server);
        inner.handle(now, CoreInput::ConnectionFailed { server, error, is_current, service })
    })
}

/// An operation wants a server. `request` is greater than every one before it in this client; `waiter` comes back with the
/// outcome, in exactly one action `CENOTE_CLIENT_ACTION_KIND_DELIVER`.
///
/// `selector` is a `cenote_server_selector`. `deadline` is when the caller gives up; `CENOTE_NEVER` is after
/// `serverSelectionTimeoutMS`, and one that is not after `now` asks for what is known. The servers whose numbers are in
/// `avoided`, an array of `count`, are chosen only where no other fits, such as one where the operation has just failed;
/// `avoided` may be null if `count` is 0. `draw` is a random number, by which two of the servers that fit are drawn.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_select(
    client: *mut Client,
    now: u64,
    request: u64,
    waiter: HandleWord,
    selector: u32,
    deadline: u64,
    avoided: *const u64,
    count: usize,
    draw: u64,
) -> Status {
    feed(client, now, |inner, now| {
        // SAFETY: the caller's promise.
        let avoided = unsafe { numbers(avoided, count)? };
        // One that was removed need not be avoided.
        let avoided = avoided.iter().filter_map(|server| inner.machine.address(ServerId(*server)));
        let avoided: Vec<_> = avoided.map(|address| (**address).clone()).collect();
        let selector = inner.selector(selector)?.avoiding(avoided);
        let deadline = match deadline {
            NEVER => now + inner.selection_timeout,
            deadline => Instant::from_nanos(deadline),
        };
        let (id, deadline) = (SelectionId(request), Some(deadline));
        inner.handle(now, CoreInput::SelectServer(Request { id, waiter, selector, deadline, draw }))
    })
}

/// A caller does not wait for its server any more. Its waiter does not come back. Does nothing if the request has its
/// outcome.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_cancel(client: *mut Client, now: u64, request: u64) -> Status {
    feed_input(client, now, CoreInput::CancelSelection { id: SelectionId(request) })
}

/// All servers are to be checked as soon as the minimum of 500 ms between two checks allows.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_request_checks(client: *mut Client, now: u64) -> Status {
    feed_input(client, now, CoreInput::RequestChecks)
}

/// The client is closed, for good: callers that wait get an error, then monitoring sockets and pools are closed.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_close(client: *mut Client, now: u64) -> Status {
    feed_input(client, now, CoreInput::Close)
}

/// The `cenote_client_next_deadline` is due. Early, late or twice does no harm.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_timer(client: *mut Client, now: u64) -> Status {
    feed(client, now, |inner, now| {
        inner.fail_late_sockets(now)?;
        inner.handle(now, CoreInput::Timer)
    })
}

/// When to call `cenote_client_timer` next; `CENOTE_NEVER` if there is nothing to wait for. To be asked again after every
/// input.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_next_deadline(
    client: *const Client,
    deadline: *mut u64,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::plain(deadline, "the deadline")? };
        let next = with(client, |inner| {
            let sockets = inner.sockets.values().filter_map(MonitorSocket::deadline);
            Ok(sockets.chain(inner.machine.next_deadline()).min())
        })?;
        out.write(next.map_or(NEVER, Instant::as_nanos));
        Ok(())
    })
}

impl Inner {
    fn connected(&mut self, now: Instant, key: Key) -> Result<(), Failure> {
        let Some(socket) = self.sockets.get_mut(&key) else { return self.expect_closed(now, key) };
        if !socket.is_connecting() {
            return Err(Failure::new(Status::Misuse, "the socket is connected already"));
        }
        match socket.connected(now, &self.establish) {
            Ok(bytes) => {
                self.actions.push_back(ClientAction::of_bytes(key, bytes));
                Ok(())
            }
            Err(error) => self.socket_failed(now, key, error),
        }
    }

    fn received(&mut self, now: Instant, key: Key, mut bytes: &[u8]) -> Result<(), Failure> {
        let (server, socket) = key;
        let Some(open) = self.sockets.get(&key) else { return self.expect_closed(now, key) };
        if open.is_connecting() {
            return Err(Failure::new(Status::Misuse, "the socket is not connected yet"));
        }
        // What follows from a reply may close it.
        while let (Some(open), Some(address)) =
            (self.sockets.get_mut(&key), self.machine.address(server))
        {
            let input = match open.read(now, &mut bytes, address) {
                Ok(None) => return Ok(()),
                Ok(Some(Received::Opened { hello, round_trip })) => {
                    CoreInput::SocketOpened { server, socket, hello, round_trip }
                }
                Ok(Some(Received::Replied { reply, more_to_come })) => {
                    CoreInput::SocketReplied { server, socket, reply, more_to_come }
                }
                Err(error) => CoreInput::SocketFailed { server, socket, error },
            };
            self.handle(now, input)?;
        }
        Ok(())
    }

    /// The machine tells a socket that was closed from one that never was.
    fn expect_closed(&mut self, now: Instant, (server, socket): Key) -> Result<(), Failure> {
        let reply: RawDocumentBuf = rawdoc! {};
        self.handle(now, CoreInput::SocketReplied { server, socket, reply, more_to_come: false })
    }

    // SD-52
    fn fail_late_sockets(&mut self, now: Instant) -> Result<(), Failure> {
        let is_late = |it: &MonitorSocket| it.deadline().is_some_and(|at| at <= now);
        let late = self.sockets.iter().filter(|(_, socket)| is_late(socket));
        let late: Vec<_> = late.map(|(key, socket)| (*key, socket.stage())).collect();
        let after = self.connect_timeout.unwrap_or_default();
        for (key, stage) in late {
            self.socket_failed(now, key, ConnectionError::timeout(stage, after))?;
        }
        Ok(())
    }

    fn selector(&self, number: u32) -> Result<CoreSelector, Failure> {
        use ServerSelector::{
            Nearest, Primary, PrimaryPreferred, ReadPreference as OfUri, Secondary,
            SecondaryPreferred,
        };
        let all = [OfUri, Primary, PrimaryPreferred, Secondary, SecondaryPreferred, Nearest];
        let mode = match numbered(&all, number, "cenote_server_selector")? {
            OfUri => return Ok(CoreSelector::ReadPreference(self.read_preference.clone())),
            Primary => ReadPreferenceMode::Primary,
            PrimaryPreferred => ReadPreferenceMode::PrimaryPreferred,
            Secondary => ReadPreferenceMode::Secondary,
            SecondaryPreferred => ReadPreferenceMode::SecondaryPreferred,
            Nearest => ReadPreferenceMode::Nearest,
        };
        Ok(CoreSelector::ReadPreference(ReadPreference::of_mode(mode)))
    }
}
