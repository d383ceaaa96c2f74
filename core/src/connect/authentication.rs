use bson::raw::{RawDocument, cstr};
use core::time::Duration;
use zeroize::Zeroizing;

use super::{
    AccessToken, EstablishOptions, Nonce, ScramCache,
    aws::{Aws, AwsKeys},
    command::{Command, Draft},
    field,
    mechanism::SaslMechanism,
    sasl::{self, OneMessage, Sasl, SaslReply, from_field, protocol},
    scram::{DerivedKeys, KeyDerivation, Scram, ScramError, ScramMechanism, ScramStep},
};
use crate::error::{CommandError, ConnectionError, Stage};
use crate::uri::{Credential, Mechanism, Secret};

/// One authentication conversation. Each ends after a bounded number of replies: three, or as many as a mechanism of
/// the embedder's own may take.
pub(super) struct Authentication {
    source: String,
    method: Method,
}

enum Method {
    Scram { scram: Box<Scram>, conversation: Option<i32> },
    X509 { username: Option<String> },
    Sasl(Sasl),
}

/// What follows a reply.
pub(super) enum AfterReply {
    Send(Draft),
    /// See [`Authentication::derivation`].
    Derive,
    Authenticated,
}

/// Checks whether the options say how to authenticate, before anything is sent.
// AU-07
pub(super) fn check(options: &EstablishOptions) -> Result<(), ConnectionError> {
    match (&options.sasl_mechanism, &options.credential) {
        (Some(own), credential) => check_own(&**own, credential.as_ref()),
        (None, Some(credential)) => check_credential(credential),
        (None, None) => Ok(()),
    }
}

fn check_own(
    own: &dyn SaslMechanism,
    credential: Option<&Credential>,
) -> Result<(), ConnectionError> {
    let name = own.name();
    if name.is_empty() || name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason = format!(
            "a mechanism's name must be 1 to 64 printable ASCII characters without spaces, not {name:?}"
        );
        return Err(configuration(&reason));
    }
    let named = credential.map(|credential| credential.mechanism.map_or("SCRAM", Mechanism::name));
    match named.filter(|named| *named != name) {
        None => Ok(()),
        Some(named) => Err(configuration(&format!(
            "the credential is for {named} and the mechanism is {name}: leave one of them out, or set \
             authMechanism={name}"
        ))),
    }
}

/// A credential that was read from a connection string has been looked at already; its fields can have been changed
/// since.
fn check_credential(credential: &Credential) -> Result<(), ConnectionError> {
    match credential.mechanism {
        None => user_and_password(credential, Mechanism::ScramSha256).map(drop)?,
        Some(mechanism @ Mechanism::ScramSha1) => {
            user_and_password(credential, mechanism).map(drop)?;
        }
        Some(mechanism @ Mechanism::ScramSha256) => {
            let (username, password) = user_and_password(credential, mechanism)?;
            let checked = Scram::check(ScramMechanism::Sha256, username, password);
            checked.map_err(|error| from_scram(&error))?;
        }
        Some(Mechanism::Plain) => plain_payload(credential).map(drop)?,
        Some(Mechanism::MongodbX509) => check_x509(credential)?,
        Some(Mechanism::MongodbOidc) => return check_oidc(credential),
        Some(Mechanism::MongodbAws) => return aws_keys(credential).map(drop),
        Some(mechanism @ (Mechanism::Gssapi | Mechanism::Custom(_))) => {
            return Err(unsupported(mechanism));
        }
    }
    match credential.mechanism_properties.is_empty() {
        true => Ok(()),
        false => Err(configuration("SCRAM, X.509 and PLAIN have no mechanism properties")),
    }
}

// AU-55, OI-01
fn check_oidc(credential: &Credential) -> Result<(), ConnectionError> {
    if credential.password.is_some() {
        return Err(configuration("MONGODB-OIDC takes no password"));
    }
    if credential.source != "$external" {
        return Err(configuration("MONGODB-OIDC has users in $external only"));
    }
    credential.check_oidc().map_err(|problem| configuration(&problem.to_string()))
}

/// No environment variable and no metadata service is asked.
// AU-55, AW-09
fn aws_keys(credential: &Credential) -> Result<AwsKeys, ConnectionError> {
    let Ok((username, password)) = user_and_password(credential, Mechanism::MongodbAws) else {
        let reason = "MONGODB-AWS needs an access key ID as the user name and a secret access key as the password: \
                      environment variables and metadata services are not asked";
        return Err(configuration(reason));
    };
    if credential.source != "$external" {
        return Err(configuration("MONGODB-AWS has users in $external only"));
    }
    if credential.mechanism_properties.keys().any(|name| *name != "AWS_SESSION_TOKEN") {
        return Err(configuration("MONGODB-AWS has no mechanism property but AWS_SESSION_TOKEN"));
    }
    let session_token = credential.mechanism_properties.get("AWS_SESSION_TOKEN").cloned();
    let secret_key = password.clone();
    Ok(AwsKeys { access_key: username.to_owned(), secret_key, session_token })
}

// AU-46
fn check_x509(credential: &Credential) -> Result<(), ConnectionError> {
    if credential.password.is_some() {
        return Err(configuration("MONGODB-X509 takes no password"));
    }
    if credential.source != "$external" {
        return Err(configuration("MONGODB-X509 has users in $external only"));
    }
    Ok(())
}

/// The mechanism to begin with in hello, if it allows that: the best one where it is still to be negotiated, and none
/// for PLAIN, which would send the password before anything is known.
// HS-43, OI-09
pub(super) fn speculates_with(options: &EstablishOptions) -> Option<Mechanism> {
    if let Some(own) = &options.sasl_mechanism {
        return own.speculates().then(|| Mechanism::of_own(own.name()));
    }
    let mechanism = options.credential.as_ref()?.mechanism.unwrap_or(Mechanism::ScramSha256);
    let speculates =
        matches!(mechanism, Mechanism::ScramSha1 | Mechanism::ScramSha256 | Mechanism::MongodbX509);
    speculates.then_some(mechanism)
}

/// The mechanism to authenticate by, and `None` if nothing says how.
pub(super) fn chosen(options: &EstablishOptions, offers_scram_sha_256: bool) -> Option<Mechanism> {
    let negotiated =
        if offers_scram_sha_256 { Mechanism::ScramSha256 } else { Mechanism::ScramSha1 };
    match (&options.sasl_mechanism, &options.credential) {
        (Some(own), _) => Some(Mechanism::of_own(own.name())),
        (None, Some(credential)) => Some(credential.mechanism.unwrap_or(negotiated)),
        (None, None) => None,
    }
}

/// Whether connections authenticate with access tokens.
pub(super) fn uses_tokens(options: &EstablishOptions) -> bool {
    chosen(options, true) == Some(Mechanism::MongodbOidc) && options.sasl_mechanism.is_none()
}

impl Authentication {
    /// `time` is since 1970, for mechanisms that sign it.
    ///
    /// # Errors
    ///
    /// When the mechanism is not supported, or the credential does not have what it
    /// needs.
    pub(super) fn new(
        mechanism: Mechanism,
        options: &EstablishOptions,
        nonce: &Nonce,
        time: Option<Duration>,
    ) -> Result<Self, ConnectionError> {
        match (&options.sasl_mechanism, &options.credential) {
            (Some(own), _) => Self::own(mechanism, &**own),
            (None, Some(credential)) => Self::of(mechanism, credential, options, nonce, time),
            (None, None) => Err(unsupported(mechanism)),
        }
    }

    /// With an access token, in one step.
    pub(super) fn with_token(
        token: &AccessToken,
        options: &EstablishOptions,
    ) -> Result<Self, ConnectionError> {
        let source = options.credential.as_ref().map_or("$external", |it| it.source.as_str());
        let conversation = Box::new(OneMessage(token.payload()));
        let method = Method::Sasl(Sasl::new(Mechanism::MongodbOidc, conversation)?);
        Ok(Self { source: source.to_owned(), method })
    }

    fn own(mechanism: Mechanism, own: &dyn SaslMechanism) -> Result<Self, ConnectionError> {
        let conversation = own.start().map_err(|error| sasl::cannot_start(mechanism, error))?;
        let method = Method::Sasl(Sasl::new(mechanism, conversation)?);
        Ok(Self { source: own.source().to_owned(), method })
    }

    fn of(
        mechanism: Mechanism,
        credential: &Credential,
        options: &EstablishOptions,
        nonce: &Nonce,
        time: Option<Duration>,
    ) -> Result<Self, ConnectionError> {
        let scram = |variant| {
            let (username, password) = user_and_password(credential, mechanism)?;
            let max_iterations = options.max_scram_iterations;
            let scram = Scram::new(variant, username, password, nonce.clone(), max_iterations);
            Ok(Method::Scram { scram: Box::new(scram), conversation: None })
        };
        let method = match mechanism {
            Mechanism::ScramSha1 => scram(ScramMechanism::Sha1)?,
            Mechanism::ScramSha256 => scram(ScramMechanism::Sha256)?,
            Mechanism::MongodbX509 => {
                let username = credential.username.clone();
                Method::X509 { username: username.filter(|it| !it.is_empty()) }
            }
            Mechanism::Plain => {
                let payload = OneMessage(plain_payload(credential)?);
                Method::Sasl(Sasl::new(mechanism, Box::new(payload))?)
            }
            Mechanism::MongodbAws => {
                let conversation = Aws::new(aws_keys(credential)?, nonce.clone(), time);
                Method::Sasl(Sasl::new(mechanism, Box::new(conversation))?)
            }
            Mechanism::Gssapi | Mechanism::MongodbOidc | Mechanism::Custom(_) => {
                return Err(unsupported(mechanism));
            }
        };
        Ok(Self { source: credential.source.clone(), method })
    }

    pub(super) fn mechanism(&self) -> Mechanism {
        match &self.method {
            Method::Scram { scram, .. } => scram.mechanism(),
            Method::X509 { .. } => Mechanism::MongodbX509,
            Method::Sasl(sasl) => sasl.mechanism,
        }
    }

    /// The database that the commands go to.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn first(&self) -> Draft {
        match &self.method {
            Method::Scram { scram, .. } => {
                sasl::start(scram.mechanism(), &scram.first_payload(), &self.source)
            }
            Method::Sasl(sasl) => sasl.first(&self.source),
            Method::X509 { username } => x509_command(username.as_deref()),
        }
    }

    /// The first command as hello carries it: that of SASL has to name its database.
    // HS-44, AU-47
    pub(super) fn speculative(&self) -> Command {
        let first = match &self.method {
            Method::Scram { .. } | Method::Sasl(_) => self.first().with(cstr!("db"), self.source()),
            Method::X509 { .. } => self.first(),
        };
        first.inner()
    }

    /// A reply to a command of its own.
    ///
    /// # Errors
    ///
    /// Each ends the conversation, at [`Stage::Authentication`].
    // AU-12
    pub(super) fn reply(
        &mut self,
        reply: &RawDocument,
        cache: &mut ScramCache,
    ) -> Result<AfterReply, ConnectionError> {
        match field::refusal(reply).map_err(from_field)? {
            Some(error) => Err(self.refused(error)),
            None => self.speculative_reply(reply, cache),
        }
    }

    /// The last payload of a mechanism other than SCRAM.
    pub(super) const fn sent(&self) -> Option<&Zeroizing<Vec<u8>>> {
        match &self.method {
            Method::Sasl(sasl) => Some(&sasl.sent),
            Method::Scram { .. } | Method::X509 { .. } => None,
        }
    }

    /// The server's text is the same whatever is wrong with a token.
    fn refused(&self, mut error: CommandError) -> ConnectionError {
        if self.mechanism() == Mechanism::MongodbOidc && error.is_authentication_failure() {
            error.message = format!(
                "the access token is refused: it has expired, or is not for this server or user: check how long it is \
                 valid, and its issuer and audience: {}",
                error.message
            );
        }
        ConnectionError::command(Stage::Authentication, error)
    }

    /// A reply inside the one to hello: it has the same fields without `ok`.
    ///
    /// # Errors
    ///
    /// As [`reply`](Self::reply).
    pub(super) fn speculative_reply(
        &mut self,
        reply: &RawDocument,
        cache: &mut ScramCache,
    ) -> Result<AfterReply, ConnectionError> {
        match &mut self.method {
            Method::X509 { .. } => Ok(AfterReply::Authenticated),
            Method::Sasl(sasl) => {
                let next = sasl.reply(reply, &self.source)?;
                Ok(next.map_or(AfterReply::Authenticated, AfterReply::Send))
            }
            Method::Scram { scram, conversation } => {
                let reply = SaslReply::read(reply).map_err(from_field)?;
                let id = sasl::same_conversation(conversation, &reply)?;
                let step = scram.reply(&reply, cache).map_err(|error| from_scram(&error))?;
                Ok(progress(id, step, &self.source))
            }
        }
    }

    /// What has to be computed before the conversation goes on.
    pub(super) const fn derivation(&self) -> Option<&KeyDerivation> {
        match &self.method {
            Method::Scram { scram, .. } => scram.derivation(),
            Method::X509 { .. } | Method::Sasl(_) => None,
        }
    }

    /// Goes on with the keys that were asked for.
    ///
    /// # Errors
    ///
    /// They were not asked for.
    pub(super) fn derived(&mut self, keys: &DerivedKeys) -> Result<AfterReply, ConnectionError> {
        match &mut self.method {
            Method::Scram { scram, conversation: Some(id) } => {
                let step = scram.derived(keys).map_err(|error| from_scram(&error))?;
                Ok(progress(*id, step, &self.source))
            }
            Method::Scram { .. } | Method::X509 { .. } | Method::Sasl(_) => {
                Err(from_scram(&ScramError::ForeignKeys))
            }
        }
    }
}

fn progress(conversation: i32, step: ScramStep, source: &str) -> AfterReply {
    match step {
        ScramStep::Send(payload) => AfterReply::Send(sasl::go_on(conversation, &payload, source)),
        ScramStep::Derive => AfterReply::Derive,
        ScramStep::Done => AfterReply::Authenticated,
    }
}

/// The certificate identifies the user; the name is sent only if it was given.
// AU-45
fn x509_command(username: Option<&str>) -> Draft {
    let room = username.map_or(0, str::len);
    let draft = Draft::new(cstr!("authenticate"), room)
        .with(cstr!("mechanism"), Mechanism::MongodbX509.name());
    match username {
        Some(username) => draft.with(cstr!("user"), username),
        None => draft,
    }
}

/// The authorization identity, the first part, is empty.
// AU-50
fn plain_payload(credential: &Credential) -> Result<Zeroizing<Vec<u8>>, ConnectionError> {
    let (username, password) = user_and_password(credential, Mechanism::Plain)?;
    credential.check_plain().map_err(|problem| configuration(&problem.to_string()))?;
    let password = password.expose();
    let mut payload = Zeroizing::new(Vec::with_capacity(username.len() + password.len() + 2));
    for part in [username, password] {
        payload.push(0);
        payload.extend_from_slice(part.as_bytes());
    }
    Ok(payload)
}

// AU-38, AU-51
fn user_and_password(
    credential: &Credential,
    mechanism: Mechanism,
) -> Result<(&str, &Secret), ConnectionError> {
    let missing = |what| configuration(&format!("{} needs a {what}", mechanism.name()));
    let username = credential.username.as_deref().filter(|username| !username.is_empty());
    let username = username.ok_or_else(|| missing("user name"))?;
    let password = credential.password.as_ref().ok_or_else(|| missing("password"))?;
    Ok((username, password))
}

fn unsupported(mechanism: Mechanism) -> ConnectionError {
    configuration(&format!("the mechanism {} is not supported", mechanism.name()))
}

fn from_scram(error: &ScramError) -> ConnectionError {
    let reason = error.to_string();
    match error {
        ScramError::Password | ScramError::ForeignKeys => configuration(&reason),
        ScramError::Malformed { .. }
        | ScramError::Extension
        | ScramError::Nonce
        | ScramError::TooFewIterations { .. }
        | ScramError::TooManyIterations { .. }
        | ScramError::Refused(_)
        | ScramError::Signature
        | ScramError::NotProven
        | ScramError::Endless => protocol(&reason),
    }
}

fn configuration(reason: &str) -> ConnectionError {
    ConnectionError::configuration(Stage::Authentication, reason)
}
