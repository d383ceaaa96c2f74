//! Replies with texts that a client must neither obey nor show as they are.

use bson::raw::{CStr, RawArrayBuf, cstr};
use bson::{RawDocument, RawDocumentBuf};

use super::entropy::Entropy;

/// Escape sequences, new lines, overrides of the direction, control characters, what looks like a password
/// or a format, nothing, and too much.
const TEXTS: [&str; 6] = [
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[31mred\u{9b}1m",
    "one\r\n2026-11-22T00:00:00Z ERROR two\u{2028}three\u{85}four",
    "\u{202e}sdrawkcab\u{2066}\u{200f}\u{61c}\u{200b}\u{feff}",
    "\0\t\u{7f}\u{8}",
    "mongodb://user:secret@host:99999/%s%n{}${x}",
    "",
];
const LONG: usize = 64 * 1024;

/// Fields with one text, and fields with an array of texts: those that a client reads from a hello and from
/// an error.
const SINGLE: [&CStr; 6] = [
    cstr!("setName"),
    cstr!("me"),
    cstr!("primary"),
    cstr!("msg"),
    cstr!("errmsg"),
    cstr!("codeName"),
];
const ARRAYS: [&CStr; 4] =
    [cstr!("hosts"), cstr!("passives"), cstr!("arbiters"), cstr!("errorLabels")];

/// The reply with a hostile text in each of these fields. If it `fails`, it says `ok: 0`.
pub(super) fn reply(body: &RawDocument, fails: bool, entropy: &mut Entropy) -> RawDocumentBuf {
    let mut reply = RawDocumentBuf::new();
    let is_replaced = |key: &CStr| {
        SINGLE.contains(&key) || ARRAYS.contains(&key) || (fails && key == cstr!("ok"))
    };
    for (key, value) in body.iter().flatten() {
        if !is_replaced(key) {
            reply.append(key, value);
        }
    }
    if fails {
        reply.append(cstr!("ok"), 0.0);
        reply.append(cstr!("code"), 8);
    }
    let mut number = usize::from(entropy.bytes::<1>()[0]);
    let mut next = || {
        number += 1;
        TEXTS.get(number % (TEXTS.len() + 1)).map_or_else(|| "x".repeat(LONG), ToString::to_string)
    };
    SINGLE.iter().for_each(|key| reply.append(key, next()));
    for key in ARRAYS {
        let texts: RawArrayBuf = [next(), next()].into_iter().collect();
        reply.append(key, texts);
    }
    reply
}
