//! A command as it came, whatever it was wrapped in.

use std::fmt;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use cenote_core::wire::{
    Compressor, CompressorId, Flags, Frame, Message, MessageLimit, OpCode, Query, WireError,
    ZlibLevel, decompress,
};

use super::refusal::{Refusal, code};

/// A command as it came.
pub(super) struct Request {
    pub(super) name: String,
    /// `$db`, or the database of an OP_QUERY; `None` when it is missing or no string.
    pub(super) database: Option<String>,
    pub(super) body: RawDocumentBuf,
    /// Documents beside the body, by the name of the field that they belong to.
    pub(super) sequences: Vec<(String, Vec<RawDocumentBuf>)>,
    pub(super) form: Form,
}

/// Without its documents, in which a password may be.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("name", &self.name)
            .field("database", &self.database)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// How a command came, and so how its reply goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) request_id: i32,
    /// As an OP_QUERY.
    pub(super) legacy: bool,
    pub(super) flags: Flags,
    pub(super) compressor: Option<Compressor>,
}

impl Request {
    /// Reads a message. The document is checked through and through, but for its UTF-8.
    ///
    /// # Errors
    ///
    /// What no server can answer: the connection has to be closed.
    pub(super) fn read(
        frame: Frame<'_>,
        limit: MessageLimit,
        compressors: &[CompressorId],
    ) -> Result<Self, WireError> {
        let compressor = compressor(frame, compressors)?;
        let mut scratch = Vec::new();
        let frame = decompress(frame, limit, &mut scratch)?;
        match frame.header().op_code {
            OpCode::Msg => Ok(Self::of_message(&Message::parse(frame)?, compressor)),
            OpCode::Query => Ok(Self::of_query(&Query::parse(frame)?, frame, compressor)),
            got @ (OpCode::Reply | OpCode::Compressed | _) => {
                Err(WireError::UnexpectedOpCode { expected: OpCode::Msg, got })
            }
        }
    }

    fn of_message(message: &Message<'_>, compressor: Option<Compressor>) -> Self {
        let request_id = message.header().ids.request_id;
        let sequences = message.sequences().map(|sequence| {
            let documents = sequence.documents().map(RawDocument::to_owned);
            (sequence.identifier().to_owned(), documents.collect())
        });
        Self {
            name: message.command_name().unwrap_or_default().to_owned(),
            database: message.database().map(str::to_owned),
            body: message.body().to_owned(),
            sequences: sequences.collect(),
            form: Form { request_id, legacy: false, flags: message.flags(), compressor },
        }
    }

    /// Old clients wrap the command once more where they want to say a read preference.
    fn of_query(query: &Query<'_>, frame: Frame<'_>, compressor: Option<Compressor>) -> Self {
        let name = first_key(query.document);
        let wrapped = match name {
            "$query" | "query" => query.document.get_document(name).ok(),
            _ => None,
        };
        let body = wrapped.unwrap_or(query.document);
        let request_id = frame.header().ids.request_id;
        Self {
            name: first_key(body).to_owned(),
            database: query.database().map(str::to_owned),
            body: body.to_owned(),
            sequences: Vec::new(),
            form: Form { request_id, legacy: true, flags: Flags::NONE, compressor },
        }
    }

    /// The first value, whose key is the command's name.
    pub(super) fn first(&self) -> Option<RawBsonRef<'_>> {
        self.body.iter().next().and_then(Result::ok).map(|(_, value)| value)
    }

    /// A field of the command.
    ///
    /// # Errors
    ///
    /// A key before it is not UTF-8.
    pub(super) fn get(&self, key: &str) -> Result<Option<RawBsonRef<'_>>, Refusal> {
        get(&self.body, key)
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, Refusal> {
        self.typed(key, "bool", truth)
    }

    pub(super) fn whole(&self, key: &str) -> Result<Option<i64>, Refusal> {
        self.typed(key, "number", whole)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, Refusal> {
        self.typed(key, "string", RawBsonRef::as_str)
    }

    pub(super) fn document(&self, key: &str) -> Result<Option<&RawDocument>, Refusal> {
        self.typed(key, "object", RawBsonRef::as_document)
    }

    /// `null` is as good as absent.
    fn typed<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        read: impl FnOnce(RawBsonRef<'a>) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        match self.get(key)? {
            None | Some(RawBsonRef::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| {
                let name = &self.name;
                mismatch(&format!("{name}.{key}"), kind)
            }),
        }
    }
}

/// A field of a document.
///
/// # Errors
///
/// A key before it is not UTF-8.
pub(super) fn get<'a>(
    document: &'a RawDocument,
    key: &str,
) -> Result<Option<RawBsonRef<'a>>, Refusal> {
    document.get(key).map_err(Refusal::from)
}

pub(super) fn mismatch(what: &str, kind: &str) -> Refusal {
    let message = format!("BSON field '{what}' is the wrong type, expected type '{kind}'");
    Refusal::new(code::TYPE_MISMATCH, message)
}

/// An array of strings.
///
/// # Errors
///
/// Something else.
pub(super) fn strings<'a>(value: RawBsonRef<'a>, what: &str) -> Result<Vec<&'a str>, Refusal> {
    let texts = value.as_array().and_then(|texts| {
        texts.into_iter().map(|text| text.ok().and_then(RawBsonRef::as_str)).collect()
    });
    texts.ok_or_else(|| mismatch(what, "array of strings"))
}

/// Any number that stands for a whole one.
pub(super) fn whole(value: RawBsonRef<'_>) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let small = value.as_i32().map(i64::from).or(value.as_i64());
    small.or_else(|| {
        let double = value.as_f64()?;
        (double.trunc() == double && double.abs() <= EXACT).then_some(double as i64)
    })
}

/// Booleans, and numbers as commands take them for booleans.
pub(super) fn truth(value: RawBsonRef<'_>) -> Option<bool> {
    let number = || value.as_f64().map(|double| double != 0.0).or(whole(value).map(|n| n != 0));
    value.as_bool().or_else(number)
}

pub(super) fn first_key(document: &RawDocument) -> &str {
    document.iter().next().and_then(Result::ok).map_or("", |(key, _)| key.as_str())
}

/// Which compressor the message came with. One that the server does not know breaks the
/// connection, as with MongoDB's servers.
fn compressor(frame: Frame<'_>, allowed: &[CompressorId]) -> Result<Option<Compressor>, WireError> {
    /// Header, originalOpcode and uncompressedSize come before it.
    const AT: usize = 24;
    if frame.header().op_code != OpCode::Compressed {
        return Ok(None);
    }
    // A message that is too short for the number is refused where it is taken apart.
    let Some(number) = frame.bytes().get(AT) else { return Ok(None) };
    let id = CompressorId::from_number(*number)?;
    if !allowed.contains(&id) {
        return Err(WireError::UnknownCompressor { id: *number });
    }
    Compressor::new(id, ZlibLevel::DEFAULT).map(Some)
}
