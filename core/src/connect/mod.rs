//! Establishing a connection, without I/O: hello, authentication, and the way through a proxy.
//!
//! [`Establish`] is a machine that is fed replies and gives commands. It speaks documents: the
//! embedder frames them as messages ([`Command::body`] goes out, a reply's body comes in) and keeps
//! the time. In this order:
//!
//! 1. [`Socks5`], if there is a proxy: bytes in, bytes out, before TLS.
//! 2. Hello: what the client is ([`ClientMetadata`]), what it can do, and, to save a round trip,
//!    the first command of the authentication.
//! 3. [`Step::Handshaken`]: what the server is. The pool is told before authentication begins.
//! 4. SCRAM-SHA-256, SCRAM-SHA-1, X.509, PLAIN, AWS or OIDC, if there is a credential; or a [`SaslMechanism`] of the embedder's
//!    own.
//! 5. [`Step::Done`]: the connection can be used.
//!
//! A connection in use goes through the fourth step again when the server asks for that
//! ([`Establish::reauthenticate`]).
//!
//! A monitor goes the same way without a credential, and then asks again and again
//! ([`Command::check`], [`Command::awaited_check`]).
//!
//! Whatever a server answers, each conversation ends after a handful of replies, the work it can
//! ask for is bounded, and what goes wrong is a [`ConnectionError`](crate::error::ConnectionError)
//! that names stage and reason. Passwords, keys, payloads and nonces are never shown, and what is
//! secret for longer than a message is overwritten when it is dropped.

mod access_token;
mod authentication;
mod aws;
mod check;
mod command;
mod description;
mod echoes;
mod environment;
mod establish;
mod field;
mod hello;
mod hello_reply;
mod mechanism;
mod membership;
mod metadata;
mod nonce;
mod options;
mod sasl;
mod scram;
mod socks5;

pub use self::{
    access_token::AccessToken,
    command::Command,
    description::{ConnectionDescription, IncompatibleServer, Limits, ServerKind},
    environment::Environment,
    establish::{Establish, Step},
    hello_reply::LOAD_BALANCING_UNSUPPORTED,
    mechanism::{MAX_SASL_PAYLOAD, MAX_SASL_REPLIES, SaslConversation, SaslMechanism},
    membership::Membership,
    metadata::{ClientMetadata, DriverInfo, MetadataError},
    nonce::Nonce,
    options::{EstablishOptions, ServerApi},
    scram::{DerivedKeys, KeyDerivation, MAX_ITERATIONS, MIN_ITERATIONS, ScramCache},
    socks5::{ProxyBytes, ProxyStep, Socks5},
};
