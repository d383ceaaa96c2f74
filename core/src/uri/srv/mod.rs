//! `mongodb+srv://`, without I/O: which names to look up, and what follows from the answers.
//!
//! ```text
//!   mongodb+srv://cluster.example.com/?…        ConnectionString::parse
//!     look up: SRV _mongodb._tcp.cluster.example.com    SrvOptions::srv_name
//!              TXT cluster.example.com                  SrvOptions::txt_name
//!   SrvAnswers                                  ConnectionString::resolve
//!     hosts, and the options of the TXT record; or an SrvError
//! ```
//!
//! These are the rules of
//! [Initial DNS Seedlist Discovery](https://github.com/mongodb/specifications/blob/master/source/initial-dns-seedlist-discovery/initial-dns-seedlist-discovery.md):
//!
//! * Each host is below the domain of the connection string's host: that host without its first label, or all of it
//!   if it has fewer than three. Another host is an error, because a forged answer could lead clients anywhere.
//!   `srvAllowedHostsSuffix` names another domain instead, and an embedder may
//!   [check the hosts itself](SrvOptions::without_host_check).
//! * The TXT record, at most one, sets only `authSource`, `replicaSet` and `loadBalanced`. The connection string's
//!   own options override it. What the record contains beyond that is an error.
//! * TLS is on unless the connection string itself turns it off.
//! * `srvMaxHosts` of the hosts are chosen at random, with the caller's random numbers.
//!
//! Decisions where the specification leaves a choice: hosts that are the same but for upper and lower case are one;
//! an IP address as the host of the connection string, and an `srvServiceName` that is none, are errors; a failed
//! look-up of the TXT record is one too, because the client would connect in another way than it was set up for,
//! unless the answer is that there is no such record.
//!
//! ```
//! use cenote_core::uri::ConnectionString;
//! use cenote_core::uri::srv::{SrvAnswers, SrvRecord, TxtRecord};
//!
//! let uri = ConnectionString::parse("mongodb+srv://cluster.example.com/?authSource=shop")?;
//! let srv = uri.srv.as_ref().expect("the scheme says so");
//! assert_eq!(srv.srv_name(), "_mongodb._tcp.cluster.example.com");
//! assert_eq!(srv.txt_name(), "cluster.example.com");
//!
//! // What the name server answers.
//! let answers = SrvAnswers {
//!     srv: Ok(vec![SrvRecord::new("db1.example.com.", 27017), SrvRecord::new("db2.example.com.", 27018)]),
//!     txt: Ok(vec![TxtRecord::from("authSource=admin&replicaSet=rs0")]),
//! };
//! let resolved = uri.resolve(&answers, || 0)?;
//! assert_eq!(resolved.hosts[1].to_string(), "db2.example.com:27018");
//! assert_eq!(resolved.topology.replica_set.as_deref(), Some("rs0"));
//! assert!(resolved.tls.enabled());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod error;
mod options;
mod resolve;

pub(super) use self::options::{
    ALLOWED_HOSTS_SUFFIX, HOST_VALIDATOR, MAX_HOSTS, SERVICE_NAME, read,
};
#[cfg(feature = "protocol")]
pub(crate) use self::{
    answers::lowest_ttl,
    resolve::{choose, distinct},
};
pub use self::{
    answers::{LookupError, SrvAnswers, SrvRecord, TxtRecord},
    error::SrvError,
    options::SrvOptions,
};
