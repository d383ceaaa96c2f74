use core::time::Duration;

use bson::oid::ObjectId;
use bson::raw::{RawDocument, cstr};
use bson::rawdoc;

use super::{
    Command, ConnectionDescription, EstablishOptions, command::Draft, hello_reply::HelloReply,
};
use crate::error::ConnectionError;

/// The commands of a monitor on a connection after its first hello, which is an
/// [`Establish`](super::Establish) with the options [`for_monitor`](EstablishOptions::for_monitor):
/// hello again, without the metadata and the abilities of the client.
///
/// ```
/// use std::time::Duration;
/// use bson::rawdoc;
/// use cenote_core::connect::{
///     ClientMetadata, Command, ConnectionDescription, Environment, EstablishOptions,
/// };
///
/// let client = ClientMetadata::new(None, &Environment::default())?;
/// let options = EstablishOptions::for_client(&client);
///
/// // The reply to the last hello on this connection.
/// let reply = rawdoc! {
///     "ok": 1, "helloOk": true,
///     "topologyVersion": { "processId": bson::oid::ObjectId::new(), "counter": 1_i64 },
/// };
/// let server = ConnectionDescription::from_reply(&reply, &options)?;
///
/// let poll = Command::check(&options, &server);
/// assert_eq!(poll.body().get_str("$db")?, "admin");
/// let stream = Command::awaited_check(&options, &server, Duration::from_secs(10));
/// let stream = stream.expect("the server counts its changes");
/// assert_eq!((stream.name(), stream.body().get_i64("maxAwaitTimeMS")?), ("hello", 10_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Command {
    /// Asks how the server is, to be answered at once. `last` is what the last hello on this
    /// connection was answered: with `helloOk` it is asked by the new name.
    ///
    /// Also for the connection that measures round-trip times.
    // HS-08
    #[must_use]
    pub fn check(options: &EstablishOptions, last: &ConnectionDescription) -> Self {
        draft(options, last).send_to("admin", options.server_api)
    }

    /// Asks how the server is, to be answered when that changes, and after `max_await`
    /// (`heartbeatFrequencyMS`) if it does not; whole milliseconds count. To be sent with
    /// `exhaustAllowed`, so that the server streams replies.
    ///
    /// `None` when the server does not count its changes (`topologyVersion`): then it can only be
    /// asked by [`check`](Self::check), from time to time.
    // SM-03, MS-10
    #[must_use]
    pub fn awaited_check(
        options: &EstablishOptions,
        last: &ConnectionDescription,
        max_await: Duration,
    ) -> Option<Self> {
        let version = last.topology_version?;
        let version = rawdoc! { "processId": ObjectId::from_bytes(version.process_id), "counter": version.counter };
        let max_await = i64::try_from(max_await.as_millis()).unwrap_or(i64::MAX);
        let draft = draft(options, last)
            .with(cstr!("topologyVersion"), version)
            .with(cstr!("maxAwaitTimeMS"), max_await);
        Some(draft.send_to("admin", options.server_api))
    }
}

impl ConnectionDescription {
    /// The description in a reply to a [`check`](Command::check). It negotiates
    /// nothing, so that there is no compressor, and no mechanism.
    ///
    /// # Errors
    ///
    /// As for a first hello, at [`Stage::Hello`](crate::error::Stage::Hello): a refusal, a field of
    /// the wrong type, or no service behind a load balancer.
    pub fn from_reply(
        reply: &RawDocument,
        options: &EstablishOptions,
    ) -> Result<Self, ConnectionError> {
        let description = HelloReply::read(reply, options)?.description;
        Ok(Self { compressor: None, ..description })
    }
}

/// A server that was asked by its old name says with `helloOk` whether it knows the new one.
// HS-07
fn draft(options: &EstablishOptions, last: &ConnectionDescription) -> Draft {
    let name =
        if options.speaks_hello() || last.hello_ok { cstr!("hello") } else { cstr!("isMaster") };
    Draft::new(name, 0).with(cstr!("helloOk"), true)
}
