/// An authentication mechanism. One that is named is used; there is no fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mechanism {
    /// `SCRAM-SHA-1`.
    ScramSha1,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `MONGODB-X509`: the client certificate of the TLS connection.
    MongodbX509,
    /// `PLAIN`: user name and password as they are, for LDAP.
    Plain,
    /// `GSSAPI`: Kerberos. Read, but not spoken.
    Gssapi,
    /// `MONGODB-AWS`: the access key, the secret key and perhaps the session token of a user of AWS.
    MongodbAws,
    /// `MONGODB-OIDC`: access tokens, which a callback of the application returns, or the platform that `ENVIRONMENT`
    /// names.
    MongodbOidc,
    /// A mechanism of the embedder's own that has no variant here, by its name. No connection string has it.
    Custom(&'static str),
}

/// Whether a part of a credential has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
    Forbidden,
}

/// What a mechanism requires of a credential.
// AU-46, AU-51
pub(super) struct Demands {
    pub(super) username: Presence,
    pub(super) password: Presence,
    /// What `authSource` is if neither it nor a database is given; `$external` is the only one for
    /// mechanisms with `external`.
    pub(super) default_source: &'static str,
    pub(super) external: bool,
    pub(super) properties: &'static [&'static str],
}

/// Where the users of other systems are looked up.
pub(super) const EXTERNAL: &str = "$external";

pub(super) const SERVICE_NAME: &str = "SERVICE_NAME";
pub(super) const CANONICALIZE_HOST_NAME: &str = "CANONICALIZE_HOST_NAME";
pub(super) const AWS_SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
pub(super) const ENVIRONMENT: &str = "ENVIRONMENT";
pub(super) const TOKEN_RESOURCE: &str = "TOKEN_RESOURCE";

impl Mechanism {
    const ALL: [Self; 7] = [
        Self::ScramSha1,
        Self::ScramSha256,
        Self::MongodbX509,
        Self::Plain,
        Self::Gssapi,
        Self::MongodbAws,
        Self::MongodbOidc,
    ];
    /// The names of all mechanisms, as connection strings and commands write them.
    pub const NAMES: [&'static str; 7] = {
        let mut names = [""; 7];
        let mut place = 0;
        while place < names.len() {
            names[place] = Self::ALL[place].name();
            place += 1;
        }
        names
    };

    /// As connection strings and commands write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::MongodbX509 => "MONGODB-X509",
            Self::Plain => "PLAIN",
            Self::Gssapi => "GSSAPI",
            Self::MongodbAws => "MONGODB-AWS",
            Self::MongodbOidc => "MONGODB-OIDC",
            Self::Custom(name) => name,
        }
    }

    /// The mechanism of this name; case matters.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// The variant for a mechanism of the embedder's own.
    #[cfg(feature = "protocol")]
    pub(crate) fn of_own(name: &'static str) -> Self {
        Self::of_name(name).unwrap_or(Self::Custom(name))
    }
}

impl Demands {
    /// `None` is the mechanism that is negotiated with the server.
    pub(super) const fn of(mechanism: Option<Mechanism>) -> Self {
        use Presence::{Forbidden, Optional, Required};
        let Some(mechanism) = mechanism else {
            // Connection strings without a password are valid as long as no mechanism is named;
            // SCRAM will refuse to begin.
            return Self::internal(Optional);
        };
        match mechanism {
            Mechanism::ScramSha1 | Mechanism::ScramSha256 => Self::internal(Required),
            Mechanism::Plain => Self { default_source: EXTERNAL, ..Self::internal(Required) },
            Mechanism::MongodbX509 => Self::external(Optional, Forbidden, &[]),
            Mechanism::Gssapi => Self::external(
                Required,
                Optional,
                &[SERVICE_NAME, CANONICALIZE_HOST_NAME, "SERVICE_REALM", "SERVICE_HOST"],
            ),
            Mechanism::MongodbAws => Self::external(Optional, Optional, &[AWS_SESSION_TOKEN]),
            Mechanism::MongodbOidc => {
                Self::external(Optional, Forbidden, &[ENVIRONMENT, TOKEN_RESOURCE])
            }
            Mechanism::Custom(_) => Self::external(Optional, Optional, &[]),
        }
    }

    const fn internal(password: Presence) -> Self {
        Self {
            username: Presence::Required,
            password,
            default_source: "admin",
            external: false,
            properties: &[],
        }
    }

    const fn external(
        username: Presence,
        password: Presence,
        properties: &'static [&'static str],
    ) -> Self {
        Self { username, password, default_source: EXTERNAL, external: true, properties }
    }
}
