//! From a connected stream to an established connection.

use std::sync::Arc;

use cenote_core::connect::{ConnectionDescription, Establish, ProxyStep, Step};
use cenote_core::error::ConnectionError;
use cenote_core::wire::{Compressor, CompressorId, Flags, MessageLimit, ZlibLevel};

use super::{Client, Conversation, Output, Phase};
use crate::simulate::wire::scanner::Scanner;

impl Conversation {
    pub(super) fn begin_hello(&self) -> Result<Phase, ConnectionError> {
        let establish = Establish::new(Arc::clone(&self.options), self.nonces.clone())?;
        Ok(Phase::Establishing(Box::new(establish)))
    }

    pub(super) fn go_through_proxy(
        &mut self,
        client: &mut Client,
        scanner: &mut Scanner,
    ) -> Vec<Output> {
        let mut outputs = Vec::new();
        while let Phase::Proxy(socks5) = &mut self.phase {
            let step = socks5.next_step();
            scanner.scan("a step through a proxy", &step);
            match step {
                Ok(ProxyStep::Send(bytes)) => outputs.push(Output::Send(bytes.as_slice().to_vec())),
                Ok(ProxyStep::Receive) => break,
                Ok(ProxyStep::Connected) => {
                    let next = self.begin_hello();
                    outputs.extend(self.begin(next, client, scanner));
                }
                Err(error) => outputs.extend(self.fail(error)),
            }
        }
        outputs
    }

    pub(super) fn establish(&mut self, client: &mut Client, scanner: &mut Scanner) -> Vec<Output> {
        let mut outputs = Vec::new();
        while let Phase::Establishing(establish) = &mut self.phase {
            let step = establish.next_step();
            if let Ok(Step::Send(command)) = &step {
                scanner.secrets.keep_payloads(command.body());
            }
            scanner.scan("a step of a conversation", &step);
            match step {
                Ok(Step::Send(command)) => {
                    match self.channel.begin(command.body(), None, Flags::NONE) {
                        Ok(()) => {
                            outputs.push(Output::Send(self.channel.outgoing().to_vec()));
                            self.channel.written();
                            self.sent = client.now;
                        }
                        Err(error) => establish.garbled(&error.to_string()),
                    }
                }
                Ok(Step::Receive) => match self.channel.reply() {
                    Ok(Some(reply)) => {
                        scanner.inputs += 1;
                        scanner.secrets.keep_payloads(&reply);
                        scanner.scan_connection_again();
                        self.round_trip = client.now.saturating_since(self.sent);
                        establish.reply(&reply, &mut client.scram);
                    }
                    Ok(None) => break,
                    Err(error) => establish.garbled(&error.to_string()),
                },
                Ok(Step::Derive(derivation)) => {
                    let keys = derivation.run();
                    scanner.scan("derived keys", &keys);
                    establish.derived(keys, &mut client.scram);
                    scanner.scan("the keys that are kept", &client.scram);
                }
                Ok(Step::Token { .. }) => establish.failed("no simulation has tokens"),
                Ok(Step::Handshaken(description)) => {
                    self.agree(&description);
                    outputs.push(Output::Handshaken(description));
                }
                Ok(Step::Done(hello)) => {
                    self.phase = Phase::Open;
                    outputs.push(Output::Opened { hello, round_trip: self.round_trip });
                }
                Err(error) => outputs.extend(self.fail(error)),
            }
        }
        outputs
    }

    fn agree(&mut self, description: &ConnectionDescription) {
        let limit = MessageLimit::new(description.limits.max_message_size.into());
        let id = description.compressor.and_then(|it| CompressorId::from_name(it.name()));
        let compressor = id.and_then(|id| Compressor::new(id, ZlibLevel::DEFAULT).ok());
        self.channel.agree(limit.unwrap_or(MessageLimit::DEFAULT), compressor);
    }
}
