//! Authenticating an open connection again.

use std::time::{Duration, Instant};

use bson::RawDocument;
use cenote_core::connect::Step;
use cenote_core::error::ConnectionError;
use cenote_core::wire::Flags;
use cenote_shell::connection::operation::{OperationLimit, OperationOptions};
use cenote_shell::connection::transport_error::TransportError;
use cenote_shell::connection::{Reauthentication, not_authenticated};

use super::Connection;

impl Connection {
    /// Authenticates the connection again, by the mechanism and the credential with which it was opened, as
    /// [reauthentication](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#reauthentication)
    /// asks: for drivers whose own [messages](Self::send) are refused with code 391, and after a command that was
    /// [begun](Self::begin). [`command`](Self::command) does so itself, once. Blocks.
    ///
    /// With MONGODB-OIDC the connection's access token is dropped from those that are kept, and the callback is called on
    /// this thread unless another connection has got a new one. `timeoutMS`, or else `socketTimeoutMS` for each wait,
    /// limits it, except the callback.
    ///
    /// # Errors
    ///
    /// The connection failed, was never authenticated, there is no new token, or the server refuses.
    // AU-09
    pub fn reauthenticate(&mut self) -> Result<(), ConnectionError> {
        self.reauthenticate_within(self.limit(OperationOptions::new()))
    }

    pub(super) const fn can_reauthenticate(&self) -> bool {
        self.reauthentication.is_some()
    }

    pub(super) fn reauthenticate_within(
        &mut self,
        limit: OperationLimit,
    ) -> Result<(), ConnectionError> {
        let mut reauthentication = self.reauthentication.take().ok_or_else(not_authenticated)?;
        let outcome = self.authenticate_again(&mut reauthentication, limit);
        self.reauthentication = Some(reauthentication);
        outcome
    }

    fn authenticate_again(
        &mut self,
        reauthentication: &mut Reauthentication,
        limit: OperationLimit,
    ) -> Result<(), ConnectionError> {
        let mut establish = reauthentication.begin(&self.description)?;
        loop {
            let outcome = match establish.next_step()? {
                Step::Send(command) => self.send_whole(command.body(), limit),
                Step::Receive => self
                    .read(limit, |transport, mut io| transport.read(&mut io))
                    .map(|reply| reauthentication.reply(&mut establish, &reply)),
                Step::Derive(derivation) => {
                    reauthentication.derive(&mut establish, derivation);
                    Ok(())
                }
                Step::Token { refused } => {
                    reauthentication.fetch_token(&mut establish, refused, time_left(limit));
                    Ok(())
                }
                Step::Handshaken(_) => Ok(()),
                Step::Done(_) => {
                    reauthentication.done(&establish);
                    return Ok(());
                }
            };
            outcome.unwrap_or_else(|error| reauthentication.failed(&mut establish, error));
        }
    }

    /// A command that names its own database.
    fn send_whole(
        &mut self,
        command: &RawDocument,
        limit: OperationLimit,
    ) -> Result<(), TransportError> {
        self.transport.begin(command, None, Flags::NONE)?;
        self.write(limit)
    }
}

fn time_left(limit: OperationLimit) -> Option<Duration> {
    let of_all = limit.deadline.map(|it| it.at.saturating_duration_since(Instant::now()));
    of_all.or(limit.each_wait)
}
