//! Causes of failures, as counted references.

use core::fmt;
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::error::{CommandError, ConnectionError, ReplyPart, RetryWrites, Stage};
use cenote_core::sdam::TopologyVersion;
use cenote_core::trace::{CauseSummary, TraceCause};

use crate::pointer::{Out, Text, optional_text, read, sized, sized_struct};
use crate::pool::HandleWord;
use crate::status::{Failure, Status, call, numbered};
use crate::table::Table;
use crate::text::{self, TextKind};

/// Why a connection could not be established, or failed in use.
///
/// A counted reference: `cenote_cause_new` gives one, `cenote_cause_retain` another, and
/// `cenote_cause_release` takes one back. A call that is given a cause leaves the caller's reference alone.
/// Causes never change, and any thread can use them at any time.
#[derive(Debug)]
pub struct Cause(());

/// How far a connection had come when it failed. All but the last belong to establishing it.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum CauseStage {
    /// Turning the host's name into addresses.
    Dns = 0,
    /// The TCP (or Unix domain) connect.
    Tcp = 1,
    /// Reaching a SOCKS5 proxy, and its answer.
    Proxy = 2,
    /// The TLS handshake, but for the certificate.
    TlsIo = 3,
    /// The certificate of the server.
    TlsCertificate = 4,
    /// The first command and its reply.
    Hello = 5,
    /// The authentication commands after hello.
    Authentication = 6,
    /// An established connection, used by an application.
    Operation = 7,
}

/// What kind of failure it is.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum CauseKind {
    /// The network failed: refused, reset, end of stream, a name that does not resolve.
    Network = 0,
    /// A limit of this side ran out; `after` says how long it was.
    Timeout = 1,
    /// The time was over before the request was sent; `after` says how long it was.
    NotSent = 2,
    /// The server replied with an error; `code`, `code_name`, `labels` and the topology version are its.
    Command = 3,
    /// The server answered something that must not be accepted; also a certificate that does not verify.
    Protocol = 4,
    /// The configuration does not work.
    Configuration = 5,
    /// This process lacks files, memory, ports or threads. It says nothing about the server.
    Local = 6,
}

impl CauseKind {
    const ALL: [Self; 7] = {
        use CauseKind::{Command, Configuration, Local, Network, NotSent, Protocol, Timeout};
        [Network, Timeout, NotSent, Command, Protocol, Configuration, Local]
    };
}

/// What a cause is made of. `CENOTE_CAUSE_OPTIONS_INIT` is a network failure in use, without a text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CauseOptions {
    /// `sizeof(cenote_cause_options)`.
    pub size: u32,
    /// A `cenote_cause_stage`.
    pub stage: u32,
    /// A `cenote_cause_kind`.
    pub kind: u32,
    /// Not 0 if the reply has a code.
    pub has_code: u32,
    /// The code of an error reply.
    pub code: i32,
    /// Not 0 if the error is a reply's `writeConcernError`.
    pub is_write_concern_error: u32,
    /// Nanoseconds of a limit that ran out.
    pub after: u64,
    /// The reason: the message of an error reply, the text of an I/O error. May be null.
    pub text: *const c_char,
    /// The code's name, or null.
    pub code_name: *const c_char,
    /// The labels of an error reply, separated by spaces, or null.
    pub labels: *const c_char,
    /// A number of the driver, such as a pointer to an error object of its own. The library returns it
    /// (`cenote_cause_payload`) and does nothing else with it.
    pub payload: HandleWord,
    /// Not 0 if the reply has a topology version.
    pub has_topology_version: u32,
    /// Its `processId`.
    pub process_id: [u8; 12],
    /// Its `counter`.
    pub counter: i64,
}

/// A network failure in use, without a text.
impl Default for CauseOptions {
    fn default() -> Self {
        Self { stage: CauseStage::Operation as u32, ..sized() }
    }
}

sized_struct!(CauseOptions, "cenote_cause_options");

/// What the machine moves.
#[derive(Clone, Debug)]
pub(crate) struct SharedCause(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    error: ConnectionError,
    payload: HandleWord,
}

static CAUSES: Table<SharedCause> = Table::new(2, "cause");

impl SharedCause {
    pub(crate) fn new(error: ConnectionError, payload: HandleWord) -> Self {
        Self(Arc::new(Inner { error, payload }))
    }

    pub(crate) fn of(handle: *const Cause) -> Result<Self, Failure> {
        CAUSES.with(handle.addr(), |cause| Ok(cause.clone()))
    }

    pub(crate) fn error(&self) -> &ConnectionError {
        &self.0.error
    }

    /// Another reference, for C.
    pub(crate) fn handle(self) -> Result<*mut Cause, Failure> {
        Ok(ptr::without_provenance_mut(CAUSES.insert(self)?))
    }
}

impl fmt::Display for SharedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl TraceCause for SharedCause {
    fn summary(&self) -> CauseSummary {
        self.error().summary()
    }

    fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.error().write_text(out)
    }
}

/// Makes a cause, which is the caller's only reference to it. All texts are copied.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_cause_new(
    options: *const CauseOptions,
    cause: *mut *mut Cause,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (options, out) = unsafe { (read(options)?, Out::plain(cause, "the cause")?) };
        // SAFETY: likewise, for the texts.
        let error = unsafe { error_of(&options)? };
        out.write(SharedCause::new(error, options.payload).handle()?);
        Ok(())
    })
}

/// The caller has promised that the texts are valid.
unsafe fn error_of(options: &CauseOptions) -> Result<ConnectionError, Failure> {
    // SAFETY: the caller's promise.
    let (text, code_name, labels) = unsafe {
        (
            optional_text(options.text, "text")?.unwrap_or_default(),
            optional_text(options.code_name, "code_name")?,
            optional_text(options.labels, "labels")?.unwrap_or_default(),
        )
    };
    let stage = numbered(&Stage::ALL, options.stage, "cenote_cause_stage")?;
    let after = Duration::from_nanos(options.after);
    Ok(match numbered(&CauseKind::ALL, options.kind, "cenote_cause_kind")? {
        CauseKind::Network => ConnectionError::network(stage, text),
        CauseKind::Timeout => ConnectionError::timeout(stage, after),
        CauseKind::NotSent => ConnectionError::not_sent(stage, after),
        CauseKind::Protocol => ConnectionError::protocol(stage, text),
        CauseKind::Configuration => ConnectionError::configuration(stage, text),
        CauseKind::Local => ConnectionError::local(stage, text),
        CauseKind::Command => {
            let code = (options.has_code != 0).then_some(options.code);
            let mut reply = CommandError::new(code, text);
            reply.code_name = code_name.map(str::to_owned);
            reply.labels = labels.split_ascii_whitespace().map(str::to_owned).collect();
            if options.is_write_concern_error != 0 {
                reply.part = ReplyPart::WriteConcern;
            }
            let (process_id, counter) = (options.process_id, options.counter);
            let version = TopologyVersion { process_id, counter };
            reply.topology_version = (options.has_topology_version != 0).then_some(version);
            ConnectionError::command(stage, reply)
        }
    })
}

/// Adds a reference.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_cause_retain(cause: *const Cause) -> Status {
    call(|| CAUSES.retain(cause.addr()))
}

/// Gives a reference back. One too many is `CENOTE_STATUS_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_cause_release(cause: *const Cause) -> Status {
    call(|| CAUSES.release(cause.addr()).map(drop))
}

/// The `payload` that the cause was made with.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_cause_payload(
    cause: *const Cause,
    payload: *mut HandleWord,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::plain(payload, "the payload")? };
        out.write(SharedCause::of(cause)?.0.payload);
        Ok(())
    })
}

/// How many places have the cause, besides the caller's reference: pools, actions that were not pulled yet,
/// and other handles. A driver that keeps an object of its own for each cause can free it at 0.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_cause_users(cause: *const Cause, users: *mut usize) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::plain(users, "the number of users")? };
        // One is in the table, one is this.
        out.write(Arc::strong_count(&SharedCause::of(cause)?.0) - 2);
        Ok(())
    })
}

/// A text of a cause: `CENOTE_TEXT_KIND_MESSAGE`, `CENOTE_TEXT_KIND_LABELS` or
/// `CENOTE_TEXT_KIND_LABELS_RETRY_WRITES`.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_cause_text(
    cause: *const Cause,
    kind: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer, capacity, length) };
        let cause = SharedCause::of(cause)?;
        target.write(&cause.text(TextKind::of(kind)?)?)
    })
}

impl SharedCause {
    pub(crate) fn text(&self, kind: TextKind) -> Result<String, Failure> {
        let labels = |retries| text::joined(self.error().labels(retries));
        match kind {
            TextKind::Message | TextKind::Explanation => Ok(self.to_string()),
            TextKind::Labels => Ok(labels(RetryWrites::Disabled)),
            TextKind::LabelsRetryWrites => Ok(labels(RetryWrites::Enabled)),
            TextKind::Name
            | TextKind::Event
            | TextKind::Reason
            | TextKind::Log
            | TextKind::LogJson
            | TextKind::Address => Err(kind.missing()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_of_the_header() {
        assert!(CauseKind::ALL.iter().enumerate().all(|(number, kind)| *kind as usize == number));
    }
}
