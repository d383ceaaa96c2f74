use std::collections::{BTreeMap, btree_map::Entry};
use std::fmt;

use super::{
    CredentialProblem, Expected, Mechanism, Problem, Secret, UriError,
    mechanism::{
        AWS_SESSION_TOKEN, CANONICALIZE_HOST_NAME, Demands, ENVIRONMENT, EXTERNAL, Presence,
        SERVICE_NAME, TOKEN_RESOURCE,
    },
    query::{Pair, Query},
    split::Userinfo,
};

/// The user as which each connection of a pool authenticates, and the mechanism. `Debug` hides its name.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credential {
    /// The user; every mechanism but X.509, AWS and OIDC has one.
    pub username: Option<String>,
    /// The password. `None` and an empty one are different things.
    pub password: Option<Secret>,
    /// `authSource`, or the default of the mechanism: the database that knows the user.
    pub source: String,
    /// `authMechanism`; `None`, and `DEFAULT` in the connection string, is the strongest SCRAM that
    /// the server offers.
    pub mechanism: Option<Mechanism>,
    /// `authMechanismProperties` by name, with the mechanism's defaults. All of them are kept
    /// secret, because the token of a session is among them.
    pub mechanism_properties: BTreeMap<&'static str, Secret>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { username, password, source, mechanism, mechanism_properties } = self;
        f.debug_struct("Credential")
            .field("username", &username.as_ref().map(|_| "…"))
            .field("password", password)
            .field("source", source)
            .field("mechanism", mechanism)
            .field("mechanism_properties", mechanism_properties)
            .finish()
    }
}

const PROPERTIES: &str = "authMechanismProperties";

/// The credential that a connection string holds: there is one if an `@` or a mechanism is written,
/// not because of a database or `authSource` alone.
// AU-06
pub(super) fn read(
    query: &mut Query,
    userinfo: Option<Userinfo>,
    database: Option<&str>,
) -> Result<Option<Credential>, UriError> {
    let source = query.take("authSource");
    if source.as_ref().is_some_and(|source| source.text().is_empty()) {
        return Err(UriError::AuthSourceEmpty);
    }
    let asked = query.take("authMechanism");
    let properties = query.secret(PROPERTIES);
    if userinfo.is_none() && asked.is_none() {
        if let Some(properties) = properties {
            query.warn(PROPERTIES, &properties, Problem::Useless("a credential"));
        }
        return Ok(None);
    }
    let mechanism = asked.as_ref().map_or(Ok(None), named)?;
    let demands = Demands::of(mechanism);
    let wrong = |problem| UriError::Credential { mechanism, problem };

    let (username, password) = halves(userinfo);
    check_presence(&demands, username.is_some(), password.is_some()).map_err(wrong)?;
    let source =
        choose_source(&demands, source.as_ref().map(Pair::text), database).map_err(wrong)?;
    let properties = match properties {
        Some(pair) => read_properties(query, &demands, &pair).map_err(wrong)?,
        None => Some(BTreeMap::new()),
    };
    let ignored = properties.is_none();
    let mechanism_properties = properties.unwrap_or_default();
    let mut credential = Credential { username, password, source, mechanism, mechanism_properties };
    if mechanism == Some(Mechanism::Plain) {
        credential.check_plain().map_err(wrong)?;
    }
    // What a mechanism misses in properties that were ignored has its warning already.
    if !ignored {
        credential.check_properties().map_err(wrong)?;
    }
    Ok(Some(credential))
}

/// User name and password; an empty user name is none.
fn halves(userinfo: Option<Userinfo>) -> (Option<String>, Option<Secret>) {
    let Some(Userinfo { username, password }) = userinfo else { return (None, None) };
    (Some(username).filter(|username| !username.is_empty()), password)
}

fn named(pair: &Pair) -> Result<Option<Mechanism>, UriError> {
    if pair.text() == "DEFAULT" {
        return Ok(None);
    }
    Mechanism::of_name(pair.text()).map(Some).ok_or(UriError::UnknownMechanism)
}

fn check_presence(
    demands: &Demands,
    username: bool,
    password: bool,
) -> Result<(), CredentialProblem> {
    match (demands.username, username) {
        (Presence::Required, false) => return Err(CredentialProblem::UsernameMissing),
        (Presence::Forbidden, true) => return Err(CredentialProblem::UsernameGiven),
        (Presence::Required, true) | (Presence::Forbidden, false) | (Presence::Optional, _) => {}
    }
    match (demands.password, password) {
        (Presence::Required, false) => Err(CredentialProblem::PasswordMissing),
        (Presence::Forbidden, true) => Err(CredentialProblem::PasswordGiven),
        (Presence::Required, true) | (Presence::Forbidden, false) | (Presence::Optional, _) => {
            Ok(())
        }
    }
}

// OP-54
fn choose_source(
    demands: &Demands,
    source: Option<&str>,
    database: Option<&str>,
) -> Result<String, CredentialProblem> {
    if demands.external {
        return match source {
            None | Some(EXTERNAL) => Ok(EXTERNAL.to_owned()),
            Some(_) => Err(CredentialProblem::SourceNotExternal),
        };
    }
    Ok(source.or(database).unwrap_or(demands.default_source).to_owned())
}

/// Sets the source that the TXT record names.
pub(super) fn with_source(credential: &mut Credential, source: &str) -> Result<(), UriError> {
    let mechanism = credential.mechanism;
    let chosen = choose_source(&Demands::of(mechanism), Some(source), None);
    credential.source = chosen.map_err(|problem| UriError::Credential { mechanism, problem })?;
    Ok(())
}

/// The properties that are written, or `None` if they are not pairs and therefore ignored.
// OP-51
fn read_properties(
    query: &mut Query,
    demands: &Demands,
    pair: &Pair,
) -> Result<Option<BTreeMap<&'static str, Secret>>, CredentialProblem> {
    let mut properties = BTreeMap::new();
    if !pair.text().split(',').all(|entry| entry.contains(':')) {
        query.invalid(PROPERTIES, pair, Expected::Pairs);
        return Ok(None);
    }
    let entries = pair.text().split(',').filter_map(|entry| entry.split_once(':'));
    for ((name, value), position) in entries.zip(1..) {
        let known = demands.properties;
        let Some(name) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            // The name stays unsaid: behind an unescaped comma it is part of a token.
            return Err(CredentialProblem::PropertyUnknown { position, known });
        };
        match properties.entry(*name) {
            Entry::Vacant(free) => drop(free.insert(Secret::from(value.to_owned()))),
            Entry::Occupied(_) => query.warn(PROPERTIES, pair, Problem::Repeated),
        }
    }
    Ok(Some(properties))
}

impl Credential {
    /// A credential of a mechanism, with nothing but its source; the rest is to be set. For a
    /// driver that has its own way to be configured. Whether it is complete is looked at when a
    /// connection is established ([`Establish::new`](crate::connect::Establish::new)).
    ///
    /// ```
    /// use cenote_core::uri::{Credential, Secret};
    ///
    /// let mut credential = Credential::new(None, "admin");
    /// credential.username = Some("app".to_owned());
    /// credential.password = Some(Secret::from("s3cret".to_owned()));
    /// ```
    #[must_use]
    pub fn new(mechanism: Option<Mechanism>, source: &str) -> Self {
        Self {
            username: None,
            password: None,
            source: source.to_owned(),
            mechanism,
            mechanism_properties: BTreeMap::new(),
        }
    }

    /// A user of the database `source`, which is `admin` as a rule, with a password; by the strongest SCRAM that the
    /// server offers.
    ///
    /// ```
    /// use cenote_core::uri::Credential;
    ///
    /// let credential = Credential::of_user("app", "n3w s3cret", "admin");
    /// assert!(!format!("{credential:?}").contains("s3cret"));
    /// ```
    #[must_use]
    pub fn of_user(username: &str, password: &str, source: &str) -> Self {
        let mut credential = Self::new(None, source);
        credential.username = Some(username.to_owned());
        credential.password = Some(Secret::from(password.to_owned()));
        credential
    }

    /// The keys of a user of AWS, or with a session token those of a role, for MONGODB-AWS.
    ///
    /// ```
    /// use cenote_core::uri::Credential;
    ///
    /// let secret = "wJalrXUtnFEMI/K7MDENG".to_owned();
    /// let keys = Credential::of_aws_keys("AKIAI44QH8DHBEXAMPLE", secret.into(), None);
    /// assert!(!format!("{keys:?}").contains("wJalr"));
    /// ```
    #[must_use]
    pub fn of_aws_keys(
        access_key: &str,
        secret_key: Secret,
        session_token: Option<Secret>,
    ) -> Self {
        let mut credential = Self::new(Some(Mechanism::MongodbAws), EXTERNAL);
        credential.username = Some(access_key.to_owned());
        credential.password = Some(secret_key);
        let token = session_token.map(|token| (AWS_SESSION_TOKEN, token));
        credential.mechanism_properties.extend(token);
        credential
    }

    /// What a mechanism's properties have to be, together and with the user.
    // AU-07
    fn check_properties(&mut self) -> Result<(), CredentialProblem> {
        match self.mechanism {
            Some(Mechanism::Gssapi) => self.check_gssapi(),
            Some(Mechanism::MongodbAws) => self.check_aws(),
            Some(Mechanism::MongodbOidc) => self.check_oidc(),
            None
            | Some(
                Mechanism::ScramSha1
                | Mechanism::ScramSha256
                | Mechanism::MongodbX509
                | Mechanism::Plain
                | Mechanism::Custom(_),
            ) => Ok(()),
        }
    }

    fn check_gssapi(&mut self) -> Result<(), CredentialProblem> {
        let known = &["none", "forward", "forwardAndReverse", "true", "false"];
        self.check_value(CANONICALIZE_HOST_NAME, known)?;
        let default = || Secret::from("mongodb".to_owned());
        self.mechanism_properties.entry(SERVICE_NAME).or_insert_with(default);
        Ok(())
    }

    fn check_aws(&self) -> Result<(), CredentialProblem> {
        let token = self.mechanism_properties.contains_key(AWS_SESSION_TOKEN);
        match (&self.username, &self.password) {
            (Some(_), Some(_)) => Ok(()),
            (None, None) if !token => Ok(()),
            (None, _) => Err(CredentialProblem::UsernameMissing),
            (Some(_), None) => Err(CredentialProblem::PasswordMissing),
        }
    }

    // AU-51
    pub(crate) fn check_plain(&self) -> Result<(), CredentialProblem> {
        let password = self.password.as_ref().map(Secret::expose);
        let parts = [self.username.as_deref(), password];
        match parts.into_iter().flatten().any(|part| part.contains('\0')) {
            true => Err(CredentialProblem::ContainsNul),
            false => Ok(()),
        }
    }

    pub(crate) fn check_oidc(&self) -> Result<(), CredentialProblem> {
        self.check_value(ENVIRONMENT, &["azure", "gcp", "k8s", "test"])?;
        let Some(environment) = self.mechanism_properties.get(ENVIRONMENT) else {
            // Tokens then come from a callback, of which a connection string knows nothing.
            return match self.mechanism_properties.is_empty() {
                true => Ok(()),
                false => Err(CredentialProblem::PropertyMissing { name: ENVIRONMENT }),
            };
        };
        let needs_resource = matches!(environment.expose(), "azure" | "gcp");
        match (needs_resource, self.mechanism_properties.contains_key(TOKEN_RESOURCE)) {
            (true, false) => {
                return Err(CredentialProblem::PropertyMissing { name: TOKEN_RESOURCE });
            }
            (false, true) => {
                return Err(CredentialProblem::PropertyUseless { name: TOKEN_RESOURCE });
            }
            (true, true) | (false, false) => {}
        }
        // Only Azure has several identities to choose from.
        if self.username.is_some() && environment.expose() != "azure" {
            return Err(CredentialProblem::UsernameGiven);
        }
        Ok(())
    }

    fn check_value(
        &self,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Result<(), CredentialProblem> {
        match self.mechanism_properties.get(name) {
            Some(value) if !known.contains(&value.expose()) => {
                Err(CredentialProblem::PropertyInvalid { name, known })
            }
            Some(_) | None => Ok(()),
        }
    }
}
