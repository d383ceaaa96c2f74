//! A client's message, against what it has to be. Headers and sections are read here by hand, so that
//! no mistake of the core's wire format hides another one.

use std::collections::BTreeMap;

use bson::RawDocument;
use cenote_core::wire::{CompressorId, Frame, MessageLimit, decompress};
use serde_json::{Map, Value};

use super::script::{Flag, Hears};
use super::value;

/// A message, read.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) request_id: i32,
    pub(super) body: Map<String, Value>,
    /// The first key of the body.
    pub(super) command: String,
    flags: u32,
    compressed: Option<CompressorId>,
    sequences: BTreeMap<String, Vec<Value>>,
}

const OP_COMPRESSED: i32 = 2012;
const OP_MSG: i32 = 2013;
const HEADER: usize = 16;
/// Where a compressed message says how.
const COMPRESSOR: usize = HEADER + 4 + 4;

impl Heard {
    /// # Errors
    ///
    /// It is no OP_MSG of one body, or not all of it.
    pub(super) fn read(message: &[u8]) -> Result<Self, String> {
        let op_code = number(message, 12)?;
        if op_code != OP_COMPRESSED {
            return Self::read_plain(message, None);
        }
        let id = *message.get(COMPRESSOR).ok_or("a compressed message ends early")?;
        let id = CompressorId::from_number(id).map_err(|error| error.to_string())?;
        let limit = MessageLimit::DEFAULT;
        let mut plain = Vec::new();
        let frame = Frame::new(message, limit).map_err(|error| error.to_string())?;
        decompress(frame, limit, &mut plain).map_err(|error| error.to_string())?;
        Self::read_plain(&plain, Some(id))
    }

    fn read_plain(message: &[u8], compressed: Option<CompressorId>) -> Result<Self, String> {
        let op_code = number(message, 12)?;
        if op_code != OP_MSG {
            return Err(format!("expected an OP_MSG, heard op code {op_code}"));
        }
        let (request_id, response_to) = (number(message, 4)?, number(message, 8)?);
        if response_to != 0 {
            return Err(format!("a request is no response, but this one is to {response_to}"));
        }
        let flags = number(message, HEADER)? as u32;
        let checksum = if flags & Flag::ChecksumPresent.bit() == 0 { 0 } else { 4 };
        let sections = message.get(HEADER + 4..message.len() - checksum).unwrap_or_default();
        let mut read = Sections::default();
        read.all(sections)?;
        let body = read.body.ok_or("there is no body")?;
        Ok(Self {
            request_id,
            command: read.command,
            body,
            flags,
            compressed,
            sequences: read.sequences,
        })
    }

    /// # Errors
    ///
    /// Where it differs from what is expected, and how.
    pub(super) fn compare(&self, expected: &Hears) -> Result<(), String> {
        let differs = |what: &str, expected: String, heard: String| {
            let all = Value::Object(self.body.clone());
            Err(format!("{what}: expected {expected}, heard {heard} in {all}"))
        };
        if self.command != expected.command {
            return differs("command", expected.command.clone(), self.command.clone());
        }
        let flags = Flag::bits(&expected.flags);
        if self.flags != flags {
            return differs("flags", format!("{flags:#b}"), format!("{:#b}", self.flags));
        }
        if self.compressed != expected.compressed {
            let shown = |id: Option<CompressorId>| id.map_or("none", CompressorId::name).to_owned();
            return differs("compressed", shown(expected.compressed), shown(self.compressed));
        }
        let list = |sequences: &BTreeMap<_, Vec<_>>| {
            let entries = sequences.iter().map(|(name, documents): (&String, _)| {
                (name.clone(), Value::Array(documents.clone()))
            });
            entries.collect::<Map<_, _>>()
        };
        let (sequences, heard) = (list(&expected.sequences), list(&self.sequences));
        let of_sequences = value::difference(&sequences, &heard, false);
        let of_sequences = of_sequences.map(|what| format!("sequences: {what}"));
        let of_body = || value::difference(&expected.body, &self.body, expected.more);
        match of_sequences.or_else(of_body) {
            Some(what) => Err(format!("{what}; heard {}", Value::Object(self.body.clone()))),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Sections {
    command: String,
    body: Option<Map<String, Value>>,
    sequences: BTreeMap<String, Vec<Value>>,
}

impl Sections {
    fn all(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while let Some((kind, rest)) = bytes.split_first() {
            let length = usize::try_from(number(rest, 0)?).unwrap_or_default();
            let (section, after) =
                rest.split_at_checked(length).ok_or("a section ends after its message")?;
            match kind {
                0 if self.body.is_some() => return Err("there are two bodies".to_owned()),
                0 => self.take_body(section)?,
                1 => self.take_sequence(section)?,
                other => return Err(format!("no section is of kind {other}")),
            }
            bytes = after;
        }
        Ok(())
    }

    fn take_body(&mut self, section: &[u8]) -> Result<(), String> {
        let document = RawDocument::from_bytes(section).map_err(|error| error.to_string())?;
        let first = document.iter().next().ok_or("the body is empty")?;
        self.command = first.map_err(|error| error.to_string())?.0.to_string();
        self.body = Some(value::seen(document)?);
        Ok(())
    }

    fn take_sequence(&mut self, section: &[u8]) -> Result<(), String> {
        let rest = section.get(4..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).ok_or("an identifier has no end")?;
        let identifier = String::from_utf8_lossy(&rest[..end]).into_owned();
        let mut documents = Vec::new();
        let mut bytes = &rest[end + 1..];
        while !bytes.is_empty() {
            let length = usize::try_from(number(bytes, 0)?).unwrap_or_default();
            let (document, after) =
                bytes.split_at_checked(length).ok_or("a document ends after its section")?;
            let document = RawDocument::from_bytes(document).map_err(|error| error.to_string())?;
            documents.push(Value::Object(value::seen(document)?));
            bytes = after;
        }
        match self.sequences.insert(identifier.clone(), documents) {
            Some(_) => Err(format!("there are two sections {identifier}")),
            None => Ok(()),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Result<i32, String> {
    let four = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
    four.map(|four| i32::from_le_bytes(*four)).ok_or_else(|| "it ends early".to_owned())
}
