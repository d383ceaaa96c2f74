//! From a stream to a connection that can be used: as the machines have it.

use std::sync::Arc;

use cenote_core::connect::{ConnectionDescription, Establish, ProxyStep, Step};
use cenote_core::error::ConnectionError;
use cenote_core::wire::{Compressor, CompressorId, Flags, MessageLimit, ZlibLevel};

use super::{Kit, Phase, Said, Talk};
use crate::simulate::wire::witness::Witness;

impl Talk {
    pub(super) fn introduce(&self) -> Result<Phase, ConnectionError> {
        let establish = Establish::new(Arc::clone(&self.options), self.nonces.clone())?;
        Ok(Phase::Establishing(Box::new(establish)))
    }

    pub(super) fn go_through_proxy(&mut self, kit: &mut Kit, witness: &mut Witness) -> Vec<Said> {
        let mut said = Vec::new();
        while let Phase::Proxy(socks5) = &mut self.phase {
            let step = socks5.next_step();
            witness.look_at("a step through a proxy", &step);
            match step {
                Ok(ProxyStep::Send(bytes)) => said.push(Said::Send(bytes.as_slice().to_vec())),
                Ok(ProxyStep::Receive) => break,
                Ok(ProxyStep::Connected) => {
                    let next = self.introduce();
                    said.extend(self.begin(next, kit, witness));
                }
                Err(error) => said.extend(self.fail(error)),
            }
        }
        said
    }

    pub(super) fn establish(&mut self, kit: &mut Kit, witness: &mut Witness) -> Vec<Said> {
        let mut said = Vec::new();
        while let Phase::Establishing(establish) = &mut self.phase {
            let step = establish.next_step();
            if let Ok(Step::Send(command)) = &step {
                witness.secrets.keep_payloads(command.body());
            }
            witness.look_at("a step of a conversation", &step);
            match step {
                Ok(Step::Send(command)) => {
                    match self.channel.begin(command.body(), None, Flags::NONE) {
                        Ok(()) => {
                            said.push(Said::Send(self.channel.outgoing().to_vec()));
                            self.channel.written();
                            self.asked = kit.now;
                        }
                        Err(error) => establish.garbled(&error.to_string()),
                    }
                }
                Ok(Step::Receive) => match self.channel.reply() {
                    Ok(Some(reply)) => {
                        witness.inputs += 1;
                        witness.secrets.keep_payloads(&reply);
                        witness.look_at_connection_again();
                        self.round_trip = kit.now.saturating_since(self.asked);
                        establish.reply(&reply, &mut kit.scram);
                    }
                    Ok(None) => break,
                    Err(error) => establish.garbled(&error.to_string()),
                },
                Ok(Step::Derive(derivation)) => {
                    let keys = derivation.run();
                    witness.look_at("derived keys", &keys);
                    establish.derived(keys, &mut kit.scram);
                    witness.look_at("the keys that are kept", &kit.scram);
                }
                Ok(Step::Handshaken(description)) => {
                    self.agree(&description);
                    said.push(Said::Handshaken(description));
                }
                Ok(Step::Done(hello)) => {
                    self.phase = Phase::Open;
                    said.push(Said::Opened { hello, round_trip: self.round_trip });
                }
                Err(error) => said.extend(self.fail(error)),
            }
        }
        said
    }

    fn agree(&mut self, description: &ConnectionDescription) {
        let limit = MessageLimit::new(description.limits.max_message_size.into());
        let id = description.compressor.and_then(|it| CompressorId::from_name(it.name()));
        let compressor = id.and_then(|id| Compressor::new(id, ZlibLevel::DEFAULT).ok());
        self.channel.agree(limit.unwrap_or(MessageLimit::DEFAULT), compressor);
    }
}
