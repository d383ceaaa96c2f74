use thiserror::Error;

use super::LookupError;
use crate::address::AddressError;
use crate::one_line::OneLine;
use crate::uri::UriError;

/// Why the host of a `mongodb+srv://` connection string leads to no servers.
///
/// Each message names the host, what is wrong and what to do. Nothing of the connection string is repeated but its
/// host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SrvError {
    /// The SRV records could not be looked up, or there are none.
    #[error("no servers for {host}: SRV records of {name}: {error}: {}", error.advice())]
    Srv {
        /// The host.
        host: String,
        /// The name that was looked up.
        name: String,
        /// Why.
        error: LookupError,
    },
    /// There are more records than any cluster has routers: 1,000.
    #[error("{host} has {records} SRV records, more than 1000: correct them")]
    TooManyRecords {
        /// The host.
        host: String,
        /// How many there are.
        records: usize,
    },
    /// The TXT record could not be looked up. To have none is no error.
    #[error(
        "no options for {host}: its TXT record: {error}: check the name servers and the way to them"
    )]
    Txt {
        /// The host.
        host: String,
        /// Why.
        error: LookupError,
    },
    /// A server is outside of the host's domain.
    #[error(
        "an SRV record of {host} names {}, which is not below {domain}: correct the record, and do not trust \
         the name server before you know where it comes from",
        OneLine::name(target)
    )]
    OutsideDomain {
        /// The host.
        host: String,
        /// The server that the record names.
        target: String,
        /// The domain that it had to be in.
        domain: String,
    },
    /// The embedder's check of hosts rejects a server.
    #[error(
        "an SRV record of {host} names {}, which the host validator rejects: correct the record or the validator, \
         and do not trust the name server before you know where the record comes from",
        OneLine::name(target)
    )]
    Rejected {
        /// The host.
        host: String,
        /// The server that the record names.
        target: String,
    },
    /// The embedder's check of hosts panicked.
    #[error(
        "an SRV record of {host} names {}, about which the host validator panicked: correct the validator",
        OneLine::name(target)
    )]
    ValidatorPanicked {
        /// The host.
        host: String,
        /// The server that the record names.
        target: String,
    },
    /// What a record names is no server.
    #[error(
        "an SRV record of {host} names {} with port {port}: {error}: correct the record",
        OneLine::name(target)
    )]
    NotAServer {
        /// The host.
        host: String,
        /// The server that the record names.
        target: String,
        /// Its port.
        port: u16,
        /// What is wrong with them.
        error: AddressError,
    },
    /// There is more than one TXT record.
    #[error(
        "{host} has {records} TXT records, but may have one: write all options into it, joined by `&`"
    )]
    SeveralTxt {
        /// The host.
        host: String,
        /// How many there are.
        records: usize,
    },
    /// The TXT record is no list of options.
    #[error("the TXT record of {host} is not UTF-8: correct the record")]
    TxtEncoding {
        /// The host.
        host: String,
    },
    /// The TXT record has an option that it must not have.
    #[error(
        "the TXT record of {host} sets {}, but may only set authSource, replicaSet and loadBalanced: remove it \
         there, and write it into the connection string if it is needed",
        OneLine::name(option)
    )]
    TxtOption {
        /// The host.
        host: String,
        /// The option.
        option: String,
    },
    /// An option of the TXT record is malformed.
    #[error("the TXT record of {host}: {error}")]
    TxtMalformed {
        /// The host.
        host: String,
        /// What is wrong.
        error: UriError,
    },
    /// The options exclude each other, or do not fit the number of servers.
    #[error("{host}, with its SRV and TXT records: {error}")]
    Options {
        /// The host.
        host: String,
        /// What is wrong.
        error: UriError,
    },
}
