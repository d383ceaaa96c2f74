//! The events of a file.

use std::io::{self, BufRead};

use crate::{Line, LineError, Unreadable, log};

/// The events of a file, each with the number of its line: JSON, one event a line, or the log of a driver, of which other
/// lines mean nothing.
///
/// Its first line decides which it is. A last line of JSON that is cut ends it: the program ended while it wrote. Reads as the events
/// are taken, and keeps one line.
#[derive(Debug)]
pub struct Events<R> {
    source: R,
    bytes: Vec<u8>,
    text: String,
    number: u64,
    form: Form,
    /// The first line, and why it is no event, until one is found.
    trouble: Option<(u64, LineError)>,
    /// The client of a log that came first.
    client: Option<String>,
    /// Of a log: how far its clock has been put back, as at midnight if its lines have no dates.
    behind: f64,
    /// The latest time of a log.
    latest: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    Json,
    Log,
}

impl<R: BufRead> Events<R> {
    /// The events that this says.
    pub const fn new(source: R) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            text: String::new(),
            number: 0,
            form: Form::Unknown,
            trouble: None,
            client: None,
            behind: 0.0,
            latest: 0.0,
        }
    }

    /// A log may have bytes that are no text.
    fn read_line(&mut self) -> io::Result<usize> {
        self.bytes.clear();
        let length = self.source.read_until(b'\n', &mut self.bytes)?;
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => self.text.push_str(text),
            Err(_) if self.form == Form::Log => {
                self.text.push_str(&String::from_utf8_lossy(&self.bytes));
            }
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
        Ok(length)
    }

    fn parse(&mut self) -> Option<Result<Line, LineError>> {
        if self.form != Form::Log {
            let parsed = Line::parse(&self.text);
            if parsed.is_ok() || self.form == Form::Json {
                self.form = Form::Json;
                return Some(parsed);
            }
            self.form = Form::Log;
            self.trouble = parsed.err().map(|source| (self.number, source));
        }
        let (line, client) = log::event(&self.text)?;
        self.trouble = None;
        Some(line.map(|line| self.of_client(line, client)))
    }

    fn of_client(&mut self, line: Line, client: Option<String>) -> Line {
        let Some(client) = client else { return line };
        let first = self.client.get_or_insert_with(|| client.clone());
        if *first == client {
            return line;
        }
        Line { address: format!("{} of client {client}", line.address).into(), ..line }
    }

    /// Times of day go on after midnight, threads write a line a moment after they have made it, and clocks are put back.
    fn dated(&mut self, line: Line) -> Line {
        let Some(at) = line.at.filter(|_| self.form == Form::Log) else { return line };
        let late = self.latest - (at + self.behind);
        if at < DAY && late > DAY / 2.0 {
            self.behind += DAY;
        } else if late > DISORDER {
            self.behind += late;
        }
        self.latest = self.latest.max(at + self.behind);
        Line { at: Some(self.latest), ..line }
    }

    fn wrong(&self, reason: LineError) -> Unreadable {
        Unreadable::Line { line: self.number, reason }
    }
}

const DAY: f64 = 86_400.0;
/// Seconds by which lines may be out of order.
const DISORDER: f64 = 5.0;

impl<R: BufRead> Iterator for Events<R> {
    type Item = Result<(u64, Line), Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.text.clear();
            self.number += 1;
            match self.read_line() {
                Ok(0) => {
                    let trouble = self.trouble.take();
                    return trouble
                        .map(|(line, reason)| Err(Unreadable::NoEvents { line, reason }));
                }
                Ok(_) => {}
                Err(reason) => return Some(Err(Unreadable::Io { line: self.number, reason })),
            }
            if self.text.trim().is_empty() {
                continue;
            }
            let is_first = self.form == Form::Unknown;
            let Some(parsed) = self.parse() else { continue };
            let is_cut = match &parsed {
                Ok(_) => false,
                Err(LineError::Json(error)) => error.is_eof(),
                Err(_) => self.form == Form::Log,
            };
            if is_cut && !is_first && !self.text.ends_with('\n') {
                return None;
            }
            let line = parsed.map(|line| self.dated(line)).map_err(|reason| self.wrong(reason));
            return Some(line.map(|line| (self.number, line)));
        }
    }
}
