//! What a trouble is for the mock server.

use std::time::Duration;

use cenote_endpoint::{Ending, Fault, ScramFault, Script, Server};
use cenote_replay::random::SplitMix;

use crate::simulate::trouble::Trouble;

/// Applies the server's part of a trouble; the rest is the network's.
pub(super) fn begin(trouble: Trouble, server: &mut Server, now: Duration, random: &mut SplitMix) {
    let script = match trouble {
        Trouble::Refuses => Script::new(Fault::Refuse),
        Trouble::Stalls => {
            server.break_connections(now, Ending::Stall, None);
            Script::new(Fault::Stall)
        }
        Trouble::Resets => {
            server.break_connections(now, Ending::Reset, None);
            Script::new(Fault::Reset)
        }
        Trouble::TalksNonsense => {
            let script = Script::new(nonsense(random));
            let command = random.pick(&["ping", "isMaster", "saslStart", "saslContinue"]);
            match command.filter(|_| random.flip()) {
                Some(command) => script.at_command(command, 0),
                None => script,
            }
        }
        Trouble::RefusesLogins => Script::new(Fault::Scram(scram_fault(random))),
        Trouble::IsOverloaded => {
            let fault = if random.flip() { Fault::Close } else { Fault::Reset };
            let script = Script::new(fault);
            let is_early = random.flip();
            if is_early { script.at_accept() } else { script.at_command("isMaster", 0) }
        }
        Trouble::ClosesIdle => {
            server.break_idle(now, Ending::Close);
            return;
        }
        Trouble::Vanishes | Trouble::IsSlow | Trouble::StepsDown => return,
    };
    server.set_fault(now, script);
}

/// Replies that are cut, in pieces, invalid, or those of another request.
fn nonsense(random: &mut SplitMix) -> Fault {
    let few = |random: &mut SplitMix, most| usize::try_from(random.between(1, most)).unwrap_or(1);
    match random.below(12) {
        0 => Fault::Garbage { bytes: few(random, 200) },
        1 => Fault::Length { value: -1 },
        2 => Fault::Length { value: i32::MAX },
        3 => Fault::Length { value: 17 },
        4 => Fault::OpCode { value: 1 },
        5 => Fault::Checksum,
        6 => Fault::ResponseTo { off_by: 1 },
        7 => Fault::CompressorId { value: 200 },
        8 => Fault::HalfClose,
        9 => {
            let every = Duration::from_micros(random.between(1, 2_000));
            Fault::Drip { bytes: few(random, 40), every }
        }
        10 => Fault::Twice,
        _ => {
            let then = random.pick(&[Ending::Close, Ending::Reset, Ending::Stall]);
            Fault::Cut { bytes: few(random, 300), then: then.unwrap_or(Ending::Close) }
        }
    }
}

fn scram_fault(random: &mut SplitMix) -> ScramFault {
    let all = [
        ScramFault::WrongSignature,
        ScramFault::Iterations(4095),
        ScramFault::TruncatedNonce,
        ScramFault::ForeignNonce,
        ScramFault::Endless,
        ScramFault::NoSignature,
        ScramFault::Error,
    ];
    random.pick(&all).unwrap_or(ScramFault::Error)
}
