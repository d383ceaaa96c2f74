//! The lines on the socket: requests of words, answers of JSON.

use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;
use std::process;
use std::time::SystemTime;

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::log::ExtendedJson;

/// Of the protocol. It changes when an inspector of before would not understand the answers.
pub(super) const VERSION: i32 = 1;

/// Bytes of a request, with its newline.
const REQUEST_MAX: u64 = 8192;

/// What an inspector asks for. Pools are counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    Pools,
    Pool(usize),
    Dump(usize, &'a Path),
    Record(usize, &'a Path),
    Stop(usize),
}

/// The first line that an inspector gets.
pub(super) fn greeting(program: &str, pools: usize) -> RawDocumentBuf {
    rawdoc! {
        "protocol": "cenote-inspect",
        "version": VERSION,
        "program": program,
        "process": i64::from(process::id()),
        "pools": i64::try_from(pools).unwrap_or(i64::MAX),
    }
}

/// An answer, as a line.
pub(super) fn line(answer: &RawDocument) -> String {
    format!("{}\n", ExtendedJson(answer))
}

pub(super) fn error(text: &str) -> RawDocumentBuf {
    rawdoc! { "error": text }
}

/// Milliseconds since 1970 of the wall clock.
pub(super) fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Reads a request into `line`. `false` at the end.
///
/// # Errors
///
/// A request that is too long, or not text; `InvalidData` then.
pub(super) fn read(reader: &mut impl BufRead, line: &mut String) -> io::Result<bool> {
    line.clear();
    let read = reader.take(REQUEST_MAX).read_line(line)?;
    if read as u64 == REQUEST_MAX && !line.ends_with('\n') {
        let text = format!("a request has {REQUEST_MAX} bytes at most");
        return Err(io::Error::new(ErrorKind::InvalidData, text));
    }
    Ok(read != 0)
}

impl<'a> Request<'a> {
    /// # Errors
    ///
    /// What is wrong with the request, in a sentence.
    pub(super) fn parse(line: &'a str) -> Result<Self, String> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (number, folder) = rest.split_once(' ').unwrap_or((rest, ""));
        let pool = || {
            let pool: Option<usize> = number.parse().ok().filter(|pool| *pool > 0);
            pool.ok_or_else(|| format!("{number:?} is not the number of a pool: 1, 2, …"))
        };
        let folder = || {
            let folder = Path::new(folder);
            let wrong = || format!("{} is not the absolute path of a folder", folder.display());
            folder.is_absolute().then_some(folder).ok_or_else(wrong)
        };
        match word {
            "pools" if rest.is_empty() => Ok(Self::Pools),
            "pool" => Ok(Self::Pool(pool()?)),
            "dump" => Ok(Self::Dump(pool()?, folder()?)),
            "record" => Ok(Self::Record(pool()?, folder()?)),
            "stop" => Ok(Self::Stop(pool()?)),
            _ => Err(format!(
                "no such request: {line:?}; there are: pools, pool N, dump N FOLDER, record N FOLDER, stop N"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn requests_are_read() {
        let folder = Path::new("/tmp/a b");
        for (line, request) in [
            ("pools\n", Request::Pools),
            ("pools", Request::Pools),
            ("pool 2\n", Request::Pool(2)),
            ("dump 1 /tmp/a b\n", Request::Dump(1, folder)),
            ("record 10 /tmp/a b\n", Request::Record(10, folder)),
            ("stop 1\n", Request::Stop(1)),
        ] {
            assert_eq!(Request::parse(line), Ok(request), "{line:?}");
        }
    }

    #[test]
    fn a_request_that_means_nothing_is_explained() {
        for (line, part) in [
            ("\n", "no such request: \"\""),
            ("{\"do\":\"pools\"}\n", "there are: pools, pool N"),
            ("pools 1\n", "no such request"),
            ("pool\n", "\"\" is not the number of a pool"),
            ("pool 0\n", "\"0\" is not the number of a pool"),
            ("pool -1\n", "\"-1\" is not"),
            ("pool 99999999999999999999999\n", "is not the number of a pool"),
            ("dump 1\n", "is not the absolute path"),
            ("dump 1 traces\n", "traces is not the absolute path of a folder"),
            ("record x /tmp\n", "\"x\" is not the number"),
        ] {
            let error = Request::parse(line).expect_err(line);
            assert!(error.contains(part), "{line:?}: {error}");
        }
    }

    #[test]
    fn no_more_is_read_than_a_request_may_have() {
        let mut line = String::new();
        let long = format!("pool {}\n", "1".repeat(REQUEST_MAX as usize));
        let error = read(&mut Cursor::new(long), &mut line).expect_err("too long");
        assert_eq!(error.to_string(), "a request has 8192 bytes at most");
        let whole = format!("pools{}\n", " ".repeat(REQUEST_MAX as usize - 6));
        assert!(read(&mut Cursor::new(whole), &mut line).expect("just short enough"));
        let error = read(&mut Cursor::new(b"\xff\n"), &mut line).expect_err("not text");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(!read(&mut Cursor::new(""), &mut line).expect("the end"));
    }
}
