use std::time::Duration;

use cenote_endpoint::{Ending, Endpoint, Fault, Script, Server, TlsFault};

/// Something that goes wrong with a server, from [`begin`](Self::begin) to [`end`](Self::end).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerFault {
    Restart,
    ResetOfAll,
    StallOfAll,
    RefuseConnections,
    CloseAndTlsStall,
    Reset,
    Cut,
    Garbage,
    Stall,
    Drip,
    Crossed,
    HostileTexts,
}

impl ServerFault {
    /// With their names. Those with the widest effect come first.
    pub(super) const ALL: [(Self, &'static str); 12] = [
        (Self::Restart, "restart"),
        (Self::ResetOfAll, "reset of all"),
        (Self::StallOfAll, "stall of all"),
        (Self::Crossed, "crossed replies"),
        (Self::HostileTexts, "hostile texts"),
        (Self::CloseAndTlsStall, "close of all, and TLS stalls"),
        (Self::Cut, "cut in the middle"),
        (Self::RefuseConnections, "connections refused"),
        (Self::Garbage, "garbage"),
        (Self::Stall, "stall"),
        (Self::Reset, "reset"),
        (Self::Drip, "slow drip"),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(fault, _)| *fault == self).map_or("", |(_, name)| name)
    }

    /// Whether it affects every open connection at once.
    pub(super) const fn is_of_all(self) -> bool {
        matches!(self, Self::Restart | Self::ResetOfAll | Self::StallOfAll | Self::CloseAndTlsStall)
    }

    /// Starts the fault. Faults of single replies affect `times` replies to `command`.
    pub(super) fn begin(self, endpoint: &Endpoint, command: &str, times: u64) {
        let every_reply = |fault| {
            let script = Script::new(fault).at_command(command, 0).times(times);
            endpoint.with(|server, now| server.set_fault(now, script));
        };
        let all = |ending| {
            endpoint.with(|server, now| server.break_connections(now, ending, None));
        };
        // So that there are new connections.
        let end_idle = || {
            endpoint.with(|server, now| server.break_idle(now, Ending::Close));
        };
        match self {
            Self::Restart => endpoint.with(Server::shut_down),
            Self::ResetOfAll => all(Ending::Reset),
            Self::StallOfAll => all(Ending::Stall),
            Self::RefuseConnections => {
                endpoint.with(|server, now| server.set_fault(now, Script::new(Fault::Refuse)));
                end_idle();
            }
            Self::CloseAndTlsStall => {
                endpoint.set_tls_fault(Some(TlsFault::Stall));
                all(Ending::Close);
            }
            Self::Reset => every_reply(Fault::Reset),
            Self::Cut => every_reply(Fault::Cut { bytes: 20, then: Ending::Close }),
            Self::Garbage => every_reply(Fault::Garbage { bytes: 100 }),
            Self::Stall => every_reply(Fault::Stall),
            Self::Drip => {
                every_reply(Fault::Drip { bytes: 3, every: Duration::from_millis(1) });
            }
            // In pairs.
            Self::Crossed => every_reply(Fault::Crossed),
            Self::HostileTexts => {
                every_reply(Fault::HostileTexts { fails: true });
                for hello in ["hello", "isMaster"] {
                    let fault = Fault::HostileTexts { fails: false };
                    let script = Script::new(fault).at_command(hello, 0);
                    endpoint.with(|server, now| server.set_fault(now, script));
                }
                end_idle();
            }
        }
    }

    /// Ends the fault. Connections that it broke stay broken.
    pub(super) fn end(self, endpoint: &Endpoint) {
        endpoint.set_tls_fault(None);
        endpoint.with(Server::clear_faults);
        if self == Self::Restart {
            endpoint.with(Server::restart);
        }
    }
}
