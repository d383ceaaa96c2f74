use std::fmt;

use thiserror::Error;

use super::{Expected, Mechanism};
use crate::{address::AddressError, pool::InvalidOptions};

/// Why a connection string cannot be used.
///
/// Each message says what is wrong, where, and how to fix it. None repeats a user name, a password,
/// a host or a value: text in the wrong place may be part of a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UriError {
    /// The scheme is neither `mongodb://` nor `mongodb+srv://`.
    #[error(
        "the connection string does not begin with `mongodb://` or `mongodb+srv://`: write one of \
         them first"
    )]
    Scheme,
    /// A `mongodb+srv://` connection string where a server is needed at once.
    #[error(
        "`mongodb+srv://` names no server before its records are looked up: use a client, or write \
         `mongodb://` and the server's own name"
    )]
    Srv,
    /// `mongodb+srv://` with more than one host.
    #[error(
        "`mongodb+srv://` has exactly one host, whose SRV records name the servers: remove the others"
    )]
    SrvSeveralHosts,
    /// `mongodb+srv://` with a port.
    #[error("`mongodb+srv://` has no port, because the SRV records name the ports: remove it")]
    SrvPort,
    /// `mongodb+srv://` with an address that has no SRV records.
    #[error(
        "the host of `mongodb+srv://` is an IP address or the path of a socket, which have no SRV \
         records: write a host name, or `mongodb://`"
    )]
    SrvHost,
    /// `srvServiceName` is not the name of a service.
    #[error(
        "srvServiceName is not made of 1 to 62 letters, digits and single hyphens between them, with \
         one letter at least: correct or remove it"
    )]
    SrvServiceName,
    /// `srvAllowedHostsSuffix` allows the hosts of others.
    #[error(
        "srvAllowedHostsSuffix {problem}: write the domain of your servers, such as cluster.example.com"
    )]
    SrvAllowedHostsSuffix {
        /// What is wrong with it.
        problem: SuffixProblem,
    },
    /// The option is a callback.
    #[error(
        "{option} is a callback, which no connection string can have: give it to the client's builder"
    )]
    NotInUri {
        /// The option.
        option: &'static str,
    },
    /// There is no host.
    #[error("there is no host behind the `://`: write one")]
    NoHost,
    /// A host or port is invalid.
    #[error("host {position}: {error}")]
    Host {
        /// Which one, counted from 1.
        position: usize,
        /// What is wrong with it.
        error: AddressError,
    },
    /// A `/` or `?` is before the last `@`, outside the options.
    #[error(
        "a `/` or `?` stands before the `@`: in a user name or password write them as %2F and %3F"
    )]
    UserinfoCut,
    /// The user name or password holds a character that must be escaped.
    #[error(
        "the user name or password holds an unescaped `{character}`: write it as %{code:02X}",
        code = u32::from(*character)
    )]
    Userinfo {
        /// One of `:`, `@`, `#`, `[` and `]`.
        character: char,
    },
    /// A percent-encoding is invalid.
    #[error(
        "{place}: a `%` must be followed by two hexadecimal digits, and what they stand for must \
         be UTF-8: write a plain `%` as %25"
    )]
    Encoding {
        /// Its place.
        place: UriPart,
    },
    /// The database name holds a forbidden character.
    #[error("the database name holds the character {character:?}, which no database name may hold")]
    Database {
        /// One of `/`, `\`, space, `"`, `$` and NUL.
        character: char,
    },
    /// An option is not a pair of name and value.
    #[error("option {position} is not of the form `name=value`: write a name, `=` and a value")]
    NotAPair {
        /// Which one, counted from 1.
        position: usize,
    },
    /// The option is only for `mongodb+srv://`.
    #[error("{option} is for `mongodb+srv://` only: remove it")]
    SrvOnly {
        /// The option.
        option: &'static str,
    },
    /// Two options that exclude each other.
    #[error("{first} and {second} exclude each other: remove one of them")]
    Conflict {
        /// The one, with its value if that matters.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The option is for other read preferences than `primary`.
    #[error(
        "{option} is for read preferences other than `primary`, which is the default: remove it, or \
         set readPreference"
    )]
    OfPrimary {
        /// The option.
        option: &'static str,
    },
    /// The option needs exactly one host.
    #[error("{option}=true needs exactly one host, but there are {hosts}: remove it or the others")]
    SeveralHosts {
        /// The option.
        option: &'static str,
        /// How many there are.
        hosts: usize,
    },
    /// `tls` and `ssl` differ.
    #[error("tls and ssl are two names of one option and have different values: keep one")]
    TlsDisagrees,
    /// The value of an option cannot be read, and without the option connections would be less safe than was asked for.
    #[error(
        "the value of {option} cannot be read, and without it connections would be less safe: write {expected}"
    )]
    Unsafe {
        /// The option.
        option: &'static str,
        /// What it has to be.
        expected: Expected,
    },
    /// A proxy option is given twice.
    #[error("{option} is given more than once: keep one")]
    ProxyRepeated {
        /// The option.
        option: &'static str,
    },
    /// A proxy option is given without `proxyHost`.
    #[error("{option} is given without a proxy's host: set proxyHost, or remove it")]
    ProxyHostMissing {
        /// The option.
        option: &'static str,
    },
    /// Only one of the proxy's user name and password is given.
    #[error("only one of proxyUsername and proxyPassword is given: give both or neither")]
    ProxyCredentialHalf,
    /// The pool options are invalid.
    #[error(transparent)]
    Pool(#[from] InvalidOptions),
    /// `authSource` is empty.
    #[error("authSource is empty: write a database, or remove it")]
    AuthSourceEmpty,
    /// The mechanism is unknown; there is no fallback to another.
    #[error("authMechanism is not one of {known}: write one of them, or remove it",
        known = Mechanism::NAMES.join(", "))]
    UnknownMechanism,
    /// The credential does not fit its mechanism.
    #[error("{}: {problem}", mechanism.map_or("the default authentication", Mechanism::name))]
    Credential {
        /// The mechanism; `None` is the default one.
        mechanism: Option<Mechanism>,
        /// What is wrong.
        problem: CredentialProblem,
    },
}

/// Why `srvAllowedHostsSuffix` is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SuffixProblem {
    /// Nothing is left without its dots.
    #[error("is empty")]
    Empty,
    /// One label, which is none of those without an owner.
    #[error(
        "has one label, which is none of test, localhost, invalid, example, local, internal, corp, home and mail"
    )]
    SingleLabel,
    /// Anyone can register a name below it.
    #[error("is a public suffix")]
    Public,
}

/// A part of a connection string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriPart {
    /// The user name.
    Username,
    /// The password.
    Password,
    /// A host, counted from 1.
    Host(usize),
    /// The database name.
    Database,
    /// The value of an option; options are counted from 1.
    Option(usize),
}

impl fmt::Display for UriPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Username => f.write_str("the user name"),
            Self::Password => f.write_str("the password"),
            Self::Host(position) => write!(f, "host {position}"),
            Self::Database => f.write_str("the database name"),
            Self::Option(position) => write!(f, "option {position}"),
        }
    }
}

/// Why a mechanism cannot work with what the connection string gives it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CredentialProblem {
    /// The mechanism needs a user name.
    #[error("a user name is missing: write `user:password@` before the hosts")]
    UsernameMissing,
    /// The mechanism needs a password.
    #[error("a password is missing: write `user:password@` before the hosts")]
    PasswordMissing,
    /// This mechanism, or its environment, has no user name.
    #[error("there is no use for a user name: remove it")]
    UsernameGiven,
    /// The mechanism takes no password.
    #[error("there is no use for a password: remove it")]
    PasswordGiven,
    /// PLAIN separates user name and password by NUL.
    #[error("user name and password must not contain NUL with PLAIN")]
    ContainsNul,
    /// The users of this mechanism are in `$external`.
    #[error("authSource must be `$external`: write that, or remove it")]
    SourceNotExternal,
    /// The mechanism has no such property.
    #[error(
        "entry {position} of authMechanismProperties is none of its properties ({}): remove it",
        if known.is_empty() { "it has none".to_owned() } else { known.join(", ") }
    )]
    PropertyUnknown {
        /// Which entry, counted from 1.
        position: usize,
        /// The mechanism's properties.
        known: &'static [&'static str],
    },
    /// A property's value is not one of those it can have.
    #[error("the property {name} is not one of {}: write one of them", known.join(", "))]
    PropertyInvalid {
        /// The property.
        name: &'static str,
        /// What it can be.
        known: &'static [&'static str],
    },
    /// A property without which the mechanism cannot work.
    #[error("the property {name} is missing: add it to authMechanismProperties")]
    PropertyMissing {
        /// The property.
        name: &'static str,
    },
    /// A property that has no meaning together with the others.
    #[error("there is no use for the property {name} here: remove it")]
    PropertyUseless {
        /// The property.
        name: &'static str,
    },
}
