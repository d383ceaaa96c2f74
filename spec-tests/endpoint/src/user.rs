//! Users and authentication mechanisms.

/// A user that can authenticate.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name as it is sent. For MONGODB-X509 the subject of the certificate, as RFC 2253
    /// writes it.
    pub name: String,
    /// Empty for MONGODB-X509.
    pub password: String,
    /// The database that the user belongs to: `authSource`.
    pub database: String,
    /// The mechanisms of this user.
    pub mechanisms: Vec<Mechanism>,
}

/// An authentication mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mechanism {
    /// `SCRAM-SHA-1`.
    ScramSha1,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `MONGODB-X509`, for users of `$external`.
    MongodbX509,
    /// `PLAIN`, for users of `$external`.
    Plain,
    /// `MONGODB-OIDC`, for the holders of [access tokens](crate::Settings::access_tokens).
    MongodbOidc,
    /// `MONGODB-AWS`, for the owners of [keys](crate::Settings::aws_keys).
    MongodbAws,
}

/// The keys of a user of AWS. `Debug` shows the access key alone.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKey {
    /// The access key ID.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: String,
    /// The session token, for temporary keys.
    pub session_token: Option<String>,
}

/// An access token that the server accepts with MONGODB-OIDC. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// The token itself; the server does not look into it.
    pub text: String,
    /// The user of `$external` that it is for.
    pub user: String,
}

/// The database of users that other systems know.
pub(super) const EXTERNAL: &str = "$external";

impl User {
    /// A user of `admin` with both SCRAM mechanisms.
    #[must_use]
    pub fn new(name: &str, password: &str) -> Self {
        Self {
            name: name.to_owned(),
            password: password.to_owned(),
            database: "admin".to_owned(),
            mechanisms: vec![Mechanism::ScramSha1, Mechanism::ScramSha256],
        }
    }

    /// A user of `$external` with a certificate of this subject.
    #[must_use]
    pub fn x509(subject: &str) -> Self {
        Self {
            database: EXTERNAL.to_owned(),
            mechanisms: vec![Mechanism::MongodbX509],
            ..Self::new(subject, "")
        }
    }

    /// A user of `$external` that sends its password in the clear (PLAIN).
    #[must_use]
    pub fn plain(name: &str, password: &str) -> Self {
        Self {
            database: EXTERNAL.to_owned(),
            mechanisms: vec![Mechanism::Plain],
            ..Self::new(name, password)
        }
    }

    /// The same user with these mechanisms.
    #[must_use]
    pub fn with_mechanisms(self, mechanisms: &[Mechanism]) -> Self {
        Self { mechanisms: mechanisms.to_vec(), ..self }
    }

    /// The same user in another database.
    #[must_use]
    pub fn in_database(self, database: &str) -> Self {
        Self { database: database.to_owned(), ..self }
    }
}

impl AccessToken {
    /// A token for a user.
    #[must_use]
    pub fn new(text: &str, user: &str) -> Self {
        Self { text: text.to_owned(), user: user.to_owned() }
    }
}

impl AwsKey {
    /// The keys of a user, without a session token.
    #[must_use]
    pub fn new(access_key: &str, secret_key: &str) -> Self {
        let (access_key, secret_key) = (access_key.to_owned(), secret_key.to_owned());
        Self { access_key, secret_key, session_token: None }
    }

    /// The same keys for one session.
    #[must_use]
    pub fn with_session_token(self, token: &str) -> Self {
        Self { session_token: Some(token.to_owned()), ..self }
    }
}

impl std::fmt::Debug for AwsKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AwsKey").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessToken").field("user", &self.user).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, password: _, database, mechanisms } = self;
        f.debug_struct("User")
            .field("name", name)
            .field("database", database)
            .field("mechanisms", mechanisms)
            .finish_non_exhaustive()
    }
}

impl Mechanism {
    /// Every mechanism.
    pub const ALL: [Self; 6] = [
        Self::ScramSha1,
        Self::ScramSha256,
        Self::MongodbX509,
        Self::Plain,
        Self::MongodbOidc,
        Self::MongodbAws,
    ];

    /// The name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::MongodbX509 => "MONGODB-X509",
            Self::Plain => "PLAIN",
            Self::MongodbOidc => "MONGODB-OIDC",
            Self::MongodbAws => "MONGODB-AWS",
        }
    }

    /// The mechanism of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }
}
