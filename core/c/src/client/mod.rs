//! A client of one or many servers behind its handle: which servers there are, a monitor for each, server selection.

pub mod action;
pub mod input;
pub mod server;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::env::{self, consts};
use std::ffi::c_char;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::client::ReadPreference;
use cenote_core::client::machine::{
    Action as CoreAction, ClientOptions, ClientState, Input as CoreInput,
};
use cenote_core::connect::{ClientMetadata, DriverInfo, Environment, EstablishOptions};
use cenote_core::error::ConnectionError;
use cenote_core::log::LogSettings;
use cenote_core::monitor::{MonitorOptions, SocketId};
use cenote_core::pool::Instant;
use cenote_core::topology::{ServerId, TopologyOptions};
use cenote_core::uri::ConnectionString;

use self::action::{ClientAction, ClientActionKind as Kind, ClientRecord};
use self::socket::MonitorSocket;
use crate::pointer::{Out, optional_text, text};
use crate::pool::HandleWord;
use crate::status::{Failure, Status, call};
use crate::table::Table;

/// A client: the state machine, its monitoring sockets as far as bytes go, and the actions that were not pulled yet.
#[derive(Debug)]
pub struct Client(());

/// Whose monitoring socket it is, and which one.
type Key = (ServerId, SocketId);

struct Inner {
    machine: ClientState<HandleWord>,
    establish: Arc<EstablishOptions>,
    /// `connectTimeoutMS`; `None` is without limit.
    connect_timeout: Option<Duration>,
    /// `serverSelectionTimeoutMS`.
    selection_timeout: Duration,
    /// That of the connection string.
    read_preference: ReadPreference,
    /// Of the servers whose pools were opened and are not closed.
    addresses: BTreeMap<ServerId, Arc<ServerAddress>>,
    /// Those that the machine has not closed.
    sockets: BTreeMap<Key, MonitorSocket>,
    /// What the driver has not pulled yet.
    actions: VecDeque<(ClientAction, ClientRecord)>,
    /// What can be asked of the action that was pulled last.
    last_action: ClientRecord,
    log: LogSettings,
    /// In log messages, unique in this process.
    topology_id: String,
}

static CLIENTS: Table<Mutex<Inner>> = Table::new(3, "client");

/// Makes a client of the deployment that a connection string names, and begins to discover it. The pools of its servers are
/// made by the driver, with the options that `cenote_options_from_uri` reads from the same string.
///
/// `driver_name` and `driver_version` are told to the servers, and may be null. A string that begins with `mongodb+srv://` is
/// refused: the library looks nothing up. Times are nanoseconds, as for pools.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_client_new(
    uri: *const c_char,
    driver_name: *const c_char,
    driver_version: *const c_char,
    now: u64,
    client: *mut *mut Client,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (uri, name, version, out) = unsafe {
            (
                text(uri, "the connection string")?,
                optional_text(driver_name, "driver_name")?,
                optional_text(driver_version, "driver_version")?,
                Out::plain(client, "the client")?,
            )
        };
        let bad = |error| Failure::new(Status::BadText, format!("the connection string: {error}"));
        let uri = ConnectionString::parse(uri).map_err(bad)?;
        let inner = Inner::new(&uri, name, version, Instant::from_nanos(now))?;
        out.write(ptr::without_provenance_mut(CLIENTS.insert(Mutex::new(inner))?));
        Ok(())
    })
}

/// Frees a client, whatever its state. Close it, and perform the actions, to get all waiters back and all sockets and pools
/// closed.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_client_free(client: *mut Client) -> Status {
    call(|| CLIENTS.release(client.addr()).map(drop))
}

/// Runs a call on a client, unless another thread is in one.
fn with<R>(
    client: *const Client,
    body: impl FnOnce(&mut Inner) -> Result<R, Failure>,
) -> Result<R, Failure> {
    CLIENTS.with_locked(client.addr(), body)
}

impl Inner {
    fn new(
        uri: &ConnectionString,
        driver: Option<&str>,
        version: Option<&str>,
        now: Instant,
    ) -> Result<Self, Failure> {
        if let (true, Some(srv)) = (uri.hosts.is_empty(), &uri.srv) {
            let text = format!(
                "the connection string: this library looks nothing up: resolve the SRV records of {}, and name the hosts",
                srv.host()
            );
            return Err(Failure::new(Status::BadText, text));
        }
        let refused = |text: String| Failure::new(Status::BadOptions, text);
        let here = environment();
        let mut metadata = ClientMetadata::new(uri.app_name.as_deref(), &here)
            .map_err(|error| refused(error.to_string()))?;
        if let Some(name) = driver {
            let info = DriverInfo::new(name, version, None);
            metadata.append(info.map_err(|error| refused(error.to_string()))?);
        }
        let options = EstablishOptions::new(uri, &metadata);
        let settings = cenote_core::client::ClientSettings::new(uri);
        let monitoring = MonitorOptions::new(uri, here.is_faas());
        let connect_timeout = Some(monitoring.connect_timeout).filter(|it| !it.is_zero());
        let selection_timeout = settings.selection_timeout;
        let establish = Arc::new(options.for_monitor());
        let options = ClientOptions {
            topology: TopologyOptions::new(uri),
            settings,
            monitoring,
            establish: Arc::clone(&establish),
            polling: None,
        };
        let mut begun = Vec::new();
        let machine = ClientState::new(now, options, &mut begun)
            .map_err(|error| refused(error.to_string()))?;
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let mut inner = Self {
            machine,
            establish,
            connect_timeout,
            selection_timeout,
            read_preference: ReadPreference::new(&uri.read_write),
            addresses: BTreeMap::new(),
            sockets: BTreeMap::new(),
            actions: VecDeque::new(),
            last_action: ClientRecord::Nothing,
            log: LogSettings::default(),
            topology_id: NEXT_ID.fetch_add(1, Ordering::Relaxed).to_string(),
        };
        inner.follow(now, begun)?;
        Ok(inner)
    }

    /// Feeds one input.
    fn handle(&mut self, now: Instant, input: CoreInput<HandleWord>) -> Result<(), Failure> {
        let mut actions = Vec::new();
        let outcome = self.machine.handle(now, input, &mut actions);
        outcome.map_err(|misuse| Failure::new(Status::Misuse, misuse.to_string()))?;
        self.follow(now, actions)
    }

    /// Does what is the library's, and leaves the rest to the driver.
    fn follow(
        &mut self,
        now: Instant,
        actions: Vec<CoreAction<HandleWord>>,
    ) -> Result<(), Failure> {
        let mut failed = Vec::new();
        for action in actions {
            let action = match action {
                CoreAction::OpenPool { server, address, is_ready } => {
                    self.addresses.insert(server, Arc::clone(&address));
                    let action = ClientAction::about(Kind::OpenPool, server);
                    (ClientAction { is_ready, ..action }, ClientRecord::Address(address))
                }
                CoreAction::FeedPool { server, change, follows: _ } => {
                    ClientAction::of_change(server, change)
                }
                CoreAction::ClosePool { server, address } => {
                    self.addresses.remove(&server);
                    let action = ClientAction::about(Kind::ClosePool, server);
                    (action, ClientRecord::Address(address))
                }
                CoreAction::OpenSocket { server, socket, .. } => {
                    let key = (server, socket);
                    let deadline = self.connect_timeout.map(|limit| now + limit);
                    self.sockets.insert(key, MonitorSocket::new(deadline));
                    (ClientAction::of_socket(Kind::OpenSocket, key), self.address_record(server))
                }
                CoreAction::Send { server, socket, command, flags } => {
                    let key = (server, socket);
                    let Some(open) = self.sockets.get_mut(&key) else { continue };
                    match open.send(&command, flags) {
                        Ok(bytes) => ClientAction::of_bytes(key, bytes),
                        Err(error) => {
                            failed.push((key, error));
                            continue;
                        }
                    }
                }
                CoreAction::CloseSocket { server, socket } => {
                    let key = (server, socket);
                    self.sockets.remove(&key);
                    (ClientAction::of_socket(Kind::CloseSocket, key), ClientRecord::Nothing)
                }
                CoreAction::Deliver { waiter, outcome: Ok(chosen) } => {
                    let record = self.address_record(chosen.first);
                    (ClientAction::of_server(waiter, chosen), record)
                }
                CoreAction::Deliver { waiter, outcome: Err(error) } => {
                    ClientAction::of_failure(waiter, error)
                }
                CoreAction::EmitEvent(event) => match ClientAction::of_event(event) {
                    Some(action) => action,
                    None => continue,
                },
                // No records are polled.
                CoreAction::LookUp { .. } | CoreAction::ReportRecords(_) => continue,
            };
            self.actions.push_back(action);
        }
        failed.into_iter().try_for_each(|(key, error)| self.socket_failed(now, key, error))
    }

    /// The machine may have removed the server since.
    fn address_record(&self, server: ServerId) -> ClientRecord {
        let address = self.addresses.get(&server).cloned();
        address.map_or(ClientRecord::Nothing, ClientRecord::Address)
    }

    fn socket_failed(
        &mut self,
        now: Instant,
        (server, socket): Key,
        error: ConnectionError,
    ) -> Result<(), Failure> {
        self.handle(now, CoreInput::SocketFailed { server, socket, error })
    }

    fn address(&self, server: ServerId) -> Result<&Arc<ServerAddress>, Failure> {
        let gone = || {
            let text =
                format!("the client has no server {}: it was removed, or never was one", server.0);
            Failure::new(Status::Nothing, text)
        };
        self.machine.address(server).ok_or_else(gone)
    }
}

fn environment() -> Environment {
    Environment {
        has_dockerenv: Path::new("/.dockerenv").exists(),
        ..Environment::of(consts::OS, consts::ARCH, |name| env::var(name).ok())
    }
}
