use core::fmt;

use super::{ConnectionError, Kind, Stage};
use crate::sdam::StalePrimary;

struct WithAdvice<'a>(&'a ConnectionError);

impl fmt::Display for WithAdvice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error) = self;
        match error.advice() {
            Some(advice) => write!(f, "{error} ({advice})"),
            None => error.fmt(f),
        }
    }
}

impl ConnectionError {
    /// The error as it is shown, and the [advice](Self::advice), if there is some, in parentheses.
    ///
    /// ```
    /// use cenote_core::error::{ConnectionError, Stage};
    ///
    /// let error = ConnectionError::network(Stage::Dns, "no such host");
    /// let text = error.with_advice().to_string();
    /// assert_eq!(text, "name resolution: no such host (check the host name and the resolver)");
    /// ```
    pub fn with_advice(&self) -> impl fmt::Display + '_ {
        WithAdvice(self)
    }

    /// What the operator of the application can do about it, as part of a sentence; `None` where
    /// the reason already says it, or there is no advice. For people that diagnose a server.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        if let Some(failure) = self.tls_failure() {
            return Some(failure.advice());
        }
        // It passes as soon as the member notices.
        if self.source_as::<StalePrimary>().is_some() {
            return None;
        }
        match (self.stage(), self.kind()) {
            // It names the option.
            (_, Kind::Configuration | Kind::NotSent { .. }) => None,
            (_, Kind::Local) => Some("raise the limits of this process, or lower maxPoolSize"),
            (Stage::Dns, _) => Some("check the host name and the resolver"),
            (Stage::Tcp, Kind::NetworkTimeout { .. }) => {
                Some("check host and port, and what lies between")
            }
            (Stage::Tcp, _) => Some("check host and port, and whether the server runs"),
            (Stage::Proxy, _) => {
                Some("check proxyHost, proxyPort and whether the proxy permits it")
            }
            (Stage::TlsIo, _) => Some("if the server does not speak TLS, leave tls=true out"),
            (Stage::TlsCertificate, _) => Some(
                "the server's certificate has to be valid now, for this host, and of an authority in \
                 tlsCAFile",
            ),
            (Stage::Hello, Kind::Network) => {
                Some("the server has gone, or speaks TLS: then add tls=true")
            }
            (Stage::Hello, Kind::NetworkTimeout { .. }) => {
                Some("the server hangs, is cut off, or is of another protocol")
            }
            (Stage::Hello, Kind::Protocol) => {
                Some("check the port: this is no MongoDB server, or it speaks TLS")
            }
            (Stage::Authentication, Kind::Command(_) | Kind::Protocol) => {
                Some("check user, password, authSource and authMechanism")
            }
            (Stage::Authentication, Kind::Network | Kind::NetworkTimeout { .. }) => {
                Some("the server has gone, or hangs")
            }
            (Stage::Hello, Kind::Command(_)) | (Stage::Operation, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::error::{ConnectionError, Stage};

    /// Each stage of opening a connection, whether it failed or nothing came.
    #[test]
    fn every_failure_before_a_connection_is_open_has_advice() {
        for stage in Stage::ALL {
            let failed = ConnectionError::network(stage, "closed by the peer");
            let silent = ConnectionError::timeout(stage, Duration::from_secs(10));
            for error in [failed, silent] {
                assert_eq!(error.advice().is_some(), stage.is_establishing(), "{error}");
            }
        }
    }

    /// The texts of errors of this side already say what to do.
    #[test]
    fn not_twice() {
        let error = ConnectionError::configuration(Stage::Hello, "correct replicaSet");
        assert_eq!(error.advice(), None);
    }
}
