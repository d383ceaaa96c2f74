use core::fmt;

use smallvec::SmallVec;

use super::template::{FIRST_OPTION, NEXT_OPTION, Piece, Template, key};
use super::{Component, LogValue, Severity};
use crate::address::ServerAddress;

/// One message to the log: of a pool, of a topology and its monitors, or of server selection.
///
/// A framework with structure takes [`message`](Self::message) and [`fields`](Self::fields), all
/// others take `Display`: one line, in the words of the specification. Fields that do not apply are
/// absent from both. An IPv6 address is in brackets in the line and without them in
/// `serverHost`.
///
/// Making one of a pool allocates for what has to be written out, a service or an error, and for nothing
/// else.
// PS-07, EV-28
#[derive(Clone)]
pub struct LogRecord<'a> {
    template: &'static Template,
    address: Option<&'a ServerAddress>,
    fields: SmallVec<[Field<'a>; FIELDS_OF_POOLS]>,
}

type Field<'a> = (&'static str, LogValue<'a>);

impl<'a> LogRecord<'a> {
    /// The message, which is the same for all events of a type.
    #[must_use]
    pub const fn message(&self) -> &'static str {
        self.template.message
    }

    /// What it is about.
    #[must_use]
    pub const fn component(&self) -> Component {
        self.template.component
    }

    /// How severe it is: `debug`, except for a server that is waited for, which is `info`.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.template.severity
    }

    /// The keys and values, in the order of the specification. `serverPort` is absent for UNIX sockets. The records
    /// of a check-out have `request` after all others, a number that its events, its error and traces have, too.
    // LG-53
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &LogValue<'a>)> {
        self.fields.iter().map(|(key, value)| (*key, value))
    }

    /// The value of the field with this key, if there is one.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&LogValue<'a>> {
        self.fields().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    // LG-03, LG-04
    pub(super) fn about(template: &'static Template) -> Self {
        Self { template, address: None, fields: SmallVec::new() }
    }

    pub(super) fn with_address(mut self, address: &'a ServerAddress) -> Self {
        self.address = Some(address);
        let port = address.port().map(|port| LogValue::Int(port.into()));
        self.with(key::SERVER_HOST, LogValue::text(address.host())).with(key::SERVER_PORT, port)
    }

    // LG-07
    pub(super) fn with(
        mut self,
        key: &'static str,
        value: impl Into<Option<LogValue<'a>>>,
    ) -> Self {
        self.fields.extend(value.into().map(|value| (key, value)));
        self
    }
}

// LG-37
impl fmt::Display for LogRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before_option = FIRST_OPTION;
        for piece in self.template.line {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Address => self.address.iter().try_for_each(|address| address.fmt(f))?,
                Piece::Around(before, key, after) => {
                    if let Some(value) = self.field(key) {
                        write!(f, "{before}{value}{after}")?;
                    }
                }
                Piece::Option(key) => {
                    if let Some(value) = self.field(key) {
                        write!(f, "{before_option}{key}={value}")?;
                        before_option = NEXT_OPTION;
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for LogRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogRecord")
            .field("message", &self.message())
            .field("fields", &self.fields)
            .finish()
    }
}

/// As many fields as "Connection pool created" has when every option was set.
const FIELDS_OF_POOLS: usize = 7;
