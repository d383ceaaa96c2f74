//! Replies as a fault has them.

use std::fmt;
use std::time::Duration;

use bson::RawDocument;
use cenote_core::wire::{Flags, OpCode, WireError};

use super::connection::Hub;
use super::decompression_bombs;
use super::entropy::Entropy;
use super::fault::{Ending, Fault};
use super::hostile_texts;
use super::replies::Envelope;
use super::request::Form;

/// What becomes of the connection after some bytes.
#[derive(Debug)]
pub(super) enum After {
    GoOn,
    Close,
    Fin,
    Reset,
    HalfClose,
    Silence,
    Drip(Drip),
}

/// Bytes that go out in pieces.
pub(super) struct Drip {
    /// When the next one does.
    pub(super) next: Duration,
    bytes: Vec<u8>,
    sent: usize,
    piece: usize,
    every: Duration,
}

/// Without the reply, in which a login may be.
impl fmt::Debug for Drip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drip")
            .field("next", &self.next)
            .field("bytes", &self.bytes.len())
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

/// Where the fields of a header stand.
const LENGTH_AT: usize = 0;
const RESPONSE_TO_AT: usize = 8;
const OP_CODE_AT: usize = 12;

/// What a fault does where there is no reply to spoil; `None` if it needs one.
pub(super) fn without_reply(fault: &Fault, entropy: &mut Entropy) -> Option<(Vec<u8>, After)> {
    if let Fault::Garbage { bytes } = fault {
        return Some((garbage(*bytes, entropy), After::GoOn));
    }
    let ends = [
        (Fault::Close, After::Close),
        (Fault::Reset, After::Reset),
        (Fault::HalfClose, After::HalfClose),
        (Fault::Stall, After::Silence),
    ];
    ends.into_iter().find(|(end, _)| end == fault).map(|(_, after)| (Vec::new(), after))
}

/// A reply's bytes, with what goes wrong with it.
///
/// # Errors
///
/// Those of [`Envelope::write`].
pub(super) fn reply(
    fault: Option<&Fault>,
    envelope: &Envelope<'_>,
    body: &RawDocument,
    hub: &mut Hub<'_>,
) -> Result<(Vec<u8>, After), WireError> {
    let Some(fault) = fault else { return Ok((envelope.write(body)?, After::GoOn)) };
    if let Some(instead) = without_reply(fault, &mut hub.world.entropy) {
        return Ok(instead);
    }
    let bytes = match fault {
        Fault::Cut { bytes, then } => {
            let mut reply = envelope.write(body)?;
            reply.truncate(*bytes);
            return Ok((reply, (*then).into()));
        }
        Fault::Drip { bytes, every } => {
            return Ok(drip(envelope.write(body)?, *bytes, *every, hub.now));
        }
        Fault::HostileTexts { fails } => {
            envelope.write(&hostile_texts::reply(body, *fails, &mut hub.world.entropy))?
        }
        Fault::Length { value } => patched(envelope.write(body)?, LENGTH_AT, *value),
        Fault::OpCode { value } => patched(envelope.write(body)?, OP_CODE_AT, *value),
        Fault::ResponseTo { off_by } => {
            let value = envelope.ids.response_to.wrapping_add(*off_by);
            patched(envelope.write(body)?, RESPONSE_TO_AT, value)
        }
        Fault::Checksum => wrong_checksum(envelope, body)?,
        Fault::CompressorId { value } => wrapped(&plain(envelope).write(body)?, *value),
        Fault::Bomb { bytes, claimed } => {
            decompression_bombs::inflating(envelope.ids, *bytes, *claimed)?
        }
        Fault::DeepBson { levels } => plain(envelope).write(&decompression_bombs::deep(*levels))?,
        Fault::Twice => envelope.write(body)?.repeat(2),
        Fault::Refuse
        | Fault::Close
        | Fault::Reset
        | Fault::HalfClose
        | Fault::Stall
        | Fault::Garbage { .. }
        | Fault::Crossed
        | Fault::Scram(_) => envelope.write(body)?,
    };
    Ok((bytes, After::GoOn))
}

/// The same reply, but not compressed.
fn plain<'a>(envelope: &Envelope<'a>) -> Envelope<'a> {
    let form = Form { compressor: None, ..envelope.form };
    Envelope { form, ..*envelope }
}

fn patched(mut message: Vec<u8>, at: usize, value: i32) -> Vec<u8> {
    if let Some(field) = message.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    message
}

fn wrong_checksum(envelope: &Envelope<'_>, body: &RawDocument) -> Result<Vec<u8>, WireError> {
    let flags = Flags { checksum_present: true, ..envelope.form.flags };
    let form = Form { flags, compressor: None, legacy: false, ..envelope.form };
    let mut message = Envelope { form, ..*envelope }.write(body)?;
    if let Some(last) = message.last_mut() {
        *last ^= 0xFF;
    }
    Ok(message)
}

/// As an OP_COMPRESSED whose bytes were not compressed at all.
fn wrapped(message: &[u8], compressor: u8) -> Vec<u8> {
    let Some((header, payload)) = message.split_at_checked(cenote_core::wire::HEADER_LENGTH) else {
        return message.to_vec();
    };
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(&header[OP_CODE_AT..]);
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.push(compressor);
    bytes.extend_from_slice(payload);
    let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    patched(patched(bytes, OP_CODE_AT, OpCode::Compressed.number()), LENGTH_AT, length)
}

/// Bytes whose header, if they are enough for one, has an unknown opcode.
fn garbage(count: usize, entropy: &mut Entropy) -> Vec<u8> {
    const MOST: usize = 1024 * 1024;
    let mut bytes = vec![0; count.min(MOST)];
    entropy.fill(&mut bytes);
    if let Some(most_significant) = bytes.get_mut(OP_CODE_AT + 3) {
        *most_significant |= 0x40;
    }
    bytes
}

fn drip(bytes: Vec<u8>, piece: usize, every: Duration, now: Duration) -> (Vec<u8>, After) {
    let mut drip = Drip { next: now, bytes, sent: 0, piece: piece.max(1), every };
    let first = drip.next_piece(now);
    let after = if drip.is_over() { After::GoOn } else { After::Drip(drip) };
    (first, after)
}

impl Drip {
    pub(super) fn next_piece(&mut self, now: Duration) -> Vec<u8> {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        let piece = rest[..self.piece.min(rest.len())].to_vec();
        self.sent += piece.len();
        self.next = now.saturating_add(self.every);
        piece
    }

    pub(super) fn is_over(&self) -> bool {
        self.sent >= self.bytes.len()
    }
}

impl From<Ending> for After {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Close => Self::Close,
            Ending::Fin => Self::Fin,
            Ending::Reset => Self::Reset,
            Ending::Stall => Self::Silence,
        }
    }
}
