use core::{fmt, time::Duration};
use std::collections::VecDeque;
use std::sync::Arc;

use bson::RawDocument;
use zeroize::Zeroizing;

use super::{
    AccessToken, Command, ConnectionDescription, DerivedKeys, EstablishOptions, KeyDerivation,
    Nonce, ScramCache, ServerKind,
    authentication::{self, AfterReply, Authentication},
    hello,
    hello_reply::HelloReply,
};
use crate::error::{BoxError, CommandError, ConnectionError, Stage};
use crate::uri::Mechanism;

/// Everything that happens on a connection between TLS and its first use, without I/O.
///
/// Ask for the [next step](Self::next_step) until it is [`Step::Done`] or an error; feed what
/// comes from outside in between. It never waits, never panics on any reply, and
/// ends after at most five replies, or [`MAX_SASL_REPLIES`](super::MAX_SASL_REPLIES) and one with a mechanism of the
/// embedder's own.
///
/// ```
/// use std::sync::Arc;
/// use bson::rawdoc;
/// use cenote_core::connect::{
///     ClientMetadata, Environment, Establish, EstablishOptions, Nonce, ScramCache, Step,
/// };
/// use cenote_core::uri::ConnectionString;
///
/// let uri = ConnectionString::parse("mongodb://db.example.com")?;
/// let client = ClientMetadata::new(None, &Environment::default())?;
/// let options = Arc::new(EstablishOptions::new(&uri, &client));
/// let mut cache = ScramCache::default();
///
/// // From a secure source, in earnest.
/// let nonces = [[1; 24], [2; 24]].map(Nonce::from_random);
/// let mut establish = Establish::new(options, nonces)?;
/// let description = loop {
///     match establish.next_step()? {
///         // Frame and write `command.body()`.
///         Step::Send(command) => assert_eq!(command.name(), "isMaster"),
///         // Read a message, and feed its document.
///         Step::Receive => {
///             establish.reply(&rawdoc! { "ok": 1, "maxWireVersion": 25 }, &mut cache);
///         }
///         // Not without a credential.
///         Step::Derive(derivation) => establish.derived(derivation.run(), &mut cache),
///         // Not without a credential for MONGODB-OIDC.
///         Step::Token { .. } => establish.failed("there are no tokens"),
///         // Tell the pool.
///         Step::Handshaken(description) => assert_eq!(description.max_wire_version, 25),
///         Step::Done(description) => break description,
///     }
/// };
/// assert_eq!(description.mechanism, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// HS-01
pub struct Establish {
    options: Arc<EstablishOptions>,
    /// For a second conversation, when what the first one began was of no use.
    second_nonce: Nonce,
    /// Since 1970, if the embedder has said it.
    time: Option<Duration>,
    phase: Phase,
    /// The access token that the server gets, or has accepted.
    token: Option<AccessToken>,
    /// Whether that is one that earlier connections used, so that there may be a newer one.
    token_is_cached: bool,
    /// Whether the connection was in use already.
    is_again: bool,
    /// The step that the embedder has not taken yet.
    steps: VecDeque<Step>,
}

/// The next step.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Send this, as one message.
    Send(Command),
    /// Wait for the reply: nothing else is to be done until [`Establish::reply`],
    /// [`Establish::failed`] or [`Establish::timed_out`] or another kind of failure.
    Receive,
    /// [Run](KeyDerivation::run) this, where a millisecond or more of computing blocks nothing
    /// else, and feed what comes out to [`Establish::derived`]. Only where the [`ScramCache`] did
    /// not know it. Calling it again returns the same.
    Derive(KeyDerivation),
    /// Get an access token from the application, and feed it to [`Establish::token`]. With a token that the server
    /// has refused with code 18, another one than that. Calling it again returns the same.
    Token {
        /// The token that was refused.
        refused: Option<AccessToken>,
    },
    /// Hello is answered. Tell the pool, which may want to know the service, and go on.
    Handshaken(Box<ConnectionDescription>),
    /// The connection can be used. Calling it again returns the same.
    Done(Box<ConnectionDescription>),
}

enum Phase {
    /// Hello is under way, with the first command of this conversation.
    Hello {
        // HS-42
        speculation: Option<Authentication>,
    },
    Authentication {
        conversation: Authentication,
        description: Box<ConnectionDescription>,
    },
    /// An access token is to come.
    Token {
        refused: Option<AccessToken>,
        description: Box<ConnectionDescription>,
    },
    Done(Box<ConnectionDescription>),
    Failed(ConnectionError),
}

impl Phase {
    /// Whether a reply is expected, or is too late.
    const fn is_open_to_replies(&self) -> bool {
        match self {
            Self::Hello { .. } | Self::Failed(_) => true,
            Self::Authentication { conversation, .. } => conversation.derivation().is_none(),
            Self::Token { .. } | Self::Done(_) => false,
        }
    }
}

impl Establish {
    /// A machine for one connection, whose first step is to send hello.
    ///
    /// The two nonces must never have been used. The second is for the case that hello's attempt to
    /// authenticate was for nothing, so that no nonce is ever used twice.
    ///
    /// # Errors
    ///
    /// When the credential asks for what is not supported or lacks what it needs, or its password
    /// cannot be one: a configuration error at [`Stage::Authentication`]. Nothing was sent then.
    pub fn new(
        options: Arc<EstablishOptions>,
        nonces: [Nonce; 2],
    ) -> Result<Self, ConnectionError> {
        let [first, second_nonce] = nonces;
        authentication::check(&options)?;
        let speculation = authentication::speculates_with(&options)
            .map(|mechanism| Authentication::new(mechanism, &options, &first, None))
            .transpose()?;
        let document = speculation.as_ref().map(Authentication::speculative);
        let hello = hello::hello(&options, document.as_ref());
        Ok(Self {
            options,
            second_nonce,
            time: None,
            phase: Phase::Hello { speculation },
            token: None,
            token_is_cached: false,
            is_again: false,
            steps: VecDeque::from([Step::Send(hello)]),
        })
    }

    /// Tells the time since 1970, which is a part of what MONGODB-AWS signs; a server of AWS accepts a difference of five
    /// minutes. Other mechanisms do without it.
    #[must_use]
    pub fn at(self, since_1970: Duration) -> Self {
        Self { time: Some(since_1970), ..self }
    }

    /// A machine for a connection in use whose server asks for
    /// [reauthentication](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#reauthentication)
    /// (code 391, [`requires_reauthentication`](crate::error::CommandError::requires_reauthentication)): the
    /// conversation of the connection's mechanism, without hello. `description` is that of the connection, the nonce
    /// must never have been used, and the time is as for [`at`](Self::at). Errors are at [`Stage::Operation`].
    ///
    /// With access tokens, drop the connection's own from those that are kept first, and give what is left to
    /// [`use_token`](Self::use_token).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and when the connection has no mechanism.
    // AU-09, OI-11
    pub fn reauthenticate(
        options: Arc<EstablishOptions>,
        nonce: Nonce,
        since_1970: Duration,
        description: Box<ConnectionDescription>,
    ) -> Result<Self, ConnectionError> {
        let begin = || match description.mechanism {
            Some(Mechanism::MongodbOidc) if options.uses_access_tokens() => Ok(None),
            Some(mechanism) => {
                authentication::check(&options)?;
                Authentication::new(mechanism, &options, &nonce, Some(since_1970)).map(Some)
            }
            None => {
                let reason = "the connection has no mechanism to authenticate by";
                Err(ConnectionError::configuration(Stage::Authentication, reason))
            }
        };
        let conversation = begin().map_err(|error| error.of_reauthentication())?;
        let mut steps = VecDeque::new();
        let phase = match conversation {
            Some(conversation) => {
                let first = conversation.first();
                steps.push_back(Step::Send(
                    first.send_to(conversation.source(), options.server_api),
                ));
                Phase::Authentication { conversation, description }
            }
            None => Phase::Token { refused: None, description },
        };
        Ok(Self {
            options,
            second_nonce: nonce,
            time: Some(since_1970),
            phase,
            token: None,
            token_is_cached: false,
            is_again: true,
            steps,
        })
    }

    /// The access token by which connections before this one were authenticated, if there is one: hello then carries
    /// it, and if the server refuses it (code 18), [`Step::Token`] asks for another one. To be called before the first
    /// step. Without effect if connections do not authenticate with tokens.
    // OI-10
    pub fn use_token(&mut self, token: AccessToken) {
        if !self.options.uses_access_tokens() {
            return;
        }
        match &mut self.phase {
            Phase::Hello { speculation } => {
                // Unless hello has been sent.
                if !self.steps.is_empty() {
                    *speculation = Authentication::with_token(&token, &self.options).ok();
                    let document = speculation.as_ref().map(Authentication::speculative);
                    let hello = hello::hello(&self.options, document.as_ref());
                    self.steps = VecDeque::from([Step::Send(hello)]);
                }
                (self.token, self.token_is_cached) = (Some(token), true);
            }
            Phase::Token { .. } => self.start_with(token, true),
            Phase::Authentication { .. } | Phase::Done(_) | Phase::Failed(_) => {}
        }
    }

    /// What [`Step::Token`] asked for.
    pub fn token(&mut self, token: AccessToken) {
        match &self.phase {
            Phase::Token { .. } => self.start_with(token, false),
            // The conversation is over.
            Phase::Failed(_) => {}
            Phase::Hello { .. } | Phase::Authentication { .. } | Phase::Done(_) => {
                let reason = "a token was given without a request";
                self.fail(ConnectionError::configuration(self.stage(), reason));
            }
        }
    }

    /// The access token by which the connection is authenticated, for
    /// [reauthentication](Self::reauthenticate) later.
    #[must_use]
    pub const fn access_token(&self) -> Option<&AccessToken> {
        self.token.as_ref()
    }

    /// The next step.
    ///
    /// # Errors
    ///
    /// The error because of which the connection has to be closed. Calling it again returns the
    /// same.
    pub fn next_step(&mut self) -> Result<Step, ConnectionError> {
        if let Some(step) = self.steps.pop_front() {
            return Ok(step);
        }
        match &self.phase {
            Phase::Hello { .. } => Ok(Step::Receive),
            Phase::Authentication { conversation, .. } => match conversation.derivation() {
                Some(derivation) => Ok(Step::Derive(derivation.clone())),
                None => Ok(Step::Receive),
            },
            Phase::Token { refused, .. } => Ok(Step::Token { refused: refused.clone() }),
            Phase::Done(description) => Ok(Step::Done(description.clone())),
            Phase::Failed(error) => Err(error.clone()),
        }
    }

    /// The server's reply: the document of a whole message.
    pub fn reply(&mut self, reply: &RawDocument, cache: &mut ScramCache) {
        let sent = self.sent_by_own_mechanism();
        let outcome = if self.steps.is_empty() && self.phase.is_open_to_replies() {
            self.proceed(reply, cache)
        } else {
            Err(ConnectionError::protocol(self.stage(), "a reply to nothing that was sent"))
        };
        if let Err(error) = outcome {
            let (token, sent) = (self.token.as_ref(), sent.as_ref().map(|it| it.as_slice()));
            self.fail(self.options.without_echoes_of(error, token, sent));
        }
    }

    /// What [`Step::Derive`] asked for; `cache` keeps it for the connections after this one.
    pub fn derived(&mut self, keys: DerivedKeys, cache: &mut ScramCache) {
        let after = match &mut self.phase {
            Phase::Authentication { conversation, .. } => conversation.derived(&keys),
            // The conversation is over.
            Phase::Failed(_) => return,
            Phase::Hello { .. } | Phase::Token { .. } | Phase::Done(_) => {
                let reason = "keys were derived without a request";
                Err(ConnectionError::configuration(self.stage(), reason))
            }
        };
        cache.learn(keys);
        match after {
            Ok(after) => self.advance(after),
            Err(error) => self.fail(error),
        }
    }

    /// The connection failed: an I/O error, or a text such as `"closed by the peer"`.
    pub fn failed(&mut self, source: impl Into<BoxError>) {
        self.fail(ConnectionError::network(self.stage(), source));
    }

    /// The time for establishing connections ran out, `after` so long.
    pub fn timed_out(&mut self, after: Duration) {
        self.fail(ConnectionError::timeout(self.stage(), after));
    }

    /// The connection failed with this error, such as the [`ConnectionError::tls`] of this
    /// [`stage`](Self::stage).
    pub fn failed_with(&mut self, error: ConnectionError) {
        self.fail(error);
    }

    /// The bytes are not a message, for this reason.
    pub fn garbled(&mut self, reason: &str) {
        self.fail(ConnectionError::protocol(self.stage(), reason));
    }

    /// Whose fault a failure would be now. Everything up to the reply to hello is hello, also an
    /// authentication that began in it.
    // SD-22
    #[must_use]
    pub fn stage(&self) -> Stage {
        match &self.phase {
            Phase::Hello { .. } => Stage::Hello,
            Phase::Authentication { .. } | Phase::Token { .. } => Stage::Authentication,
            Phase::Done(_) => Stage::Operation,
            Phase::Failed(error) => error.stage(),
        }
    }
}

impl fmt::Debug for Establish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Establish").field("stage", &self.stage()).finish_non_exhaustive()
    }
}

impl Establish {
    /// What the server may repeat of a mechanism whose secrets are not in the options.
    fn sent_by_own_mechanism(&self) -> Option<Zeroizing<Vec<u8>>> {
        self.options.sasl_mechanism.as_ref()?;
        match &self.phase {
            Phase::Hello { speculation: Some(conversation) }
            | Phase::Authentication { conversation, .. } => conversation.sent().cloned(),
            Phase::Hello { speculation: None }
            | Phase::Token { .. }
            | Phase::Done(_)
            | Phase::Failed(_) => None,
        }
    }

    /// The first failure counts. What was learnt before it is still told: behind a load balancer
    /// the pool must know which service failed.
    fn fail(&mut self, error: ConnectionError) {
        self.steps.retain(|step| matches!(step, Step::Handshaken(_)));
        let error = if self.is_again { error.of_reauthentication() } else { error };
        if !matches!(self.phase, Phase::Failed(_)) {
            self.phase = Phase::Failed(error);
        }
    }

    fn proceed(
        &mut self,
        reply: &RawDocument,
        cache: &mut ScramCache,
    ) -> Result<(), ConnectionError> {
        match &mut self.phase {
            Phase::Hello { speculation } => {
                let speculation = speculation.take();
                self.hello_reply(reply, speculation, cache)
            }
            Phase::Authentication { conversation, description } => {
                let outcome = conversation.reply(reply, cache);
                if self.token_is_cached && outcome.as_ref().is_err_and(is_authentication_failure) {
                    let (refused, description) = (self.token.take(), description.clone());
                    self.phase = Phase::Token { refused, description };
                    return Ok(());
                }
                self.advance(outcome?);
                Ok(())
            }
            Phase::Token { .. } | Phase::Done(_) | Phase::Failed(_) => Ok(()),
        }
    }

    fn hello_reply(
        &mut self,
        reply: &RawDocument,
        speculation: Option<Authentication>,
        cache: &mut ScramCache,
    ) -> Result<(), ConnectionError> {
        let options = Arc::clone(&self.options);
        let reply = HelloReply::read(reply, &options)?;
        let description = Box::new(reply.description.clone());
        self.steps.push_back(Step::Handshaken(description.clone()));
        // AU-11
        match authentication::chosen(&options, reply.offers_scram_sha_256) {
            // AU-02
            Some(mechanism) if description.kind != ServerKind::RsArbiter => {
                self.authenticate(mechanism, &reply, speculation, cache)
            }
            Some(_) | None => {
                self.phase = Phase::Done(description);
                Ok(())
            }
        }
    }

    /// Goes on with what hello began, or begins anew: when the server did not take part, or when it
    /// was the wrong mechanism.
    // HS-45, HS-47, AU-01, AU-08, AU-41, LN-06
    fn authenticate(
        &mut self,
        mechanism: Mechanism,
        reply: &HelloReply<'_>,
        speculation: Option<Authentication>,
        cache: &mut ScramCache,
    ) -> Result<(), ConnectionError> {
        if self.options.uses_access_tokens() {
            self.authenticate_by_token(reply, speculation, cache);
            return Ok(());
        }
        let speculation = speculation.filter(|it| it.mechanism() == mechanism);
        let (conversation, after) = match speculation.zip(reply.speculative) {
            Some((mut conversation, reply)) => {
                let after = conversation.speculative_reply(reply, cache)?;
                (conversation, after)
            }
            None => {
                let conversation =
                    Authentication::new(mechanism, &self.options, &self.second_nonce, self.time)?;
                let first = AfterReply::Send(conversation.first());
                (conversation, first)
            }
        };
        let description = Box::new(reply.description.clone());
        self.phase = Phase::Authentication { conversation, description };
        self.advance(after);
        Ok(())
    }

    /// A token that hello carried for nothing is sent again: the server may have ignored it.
    fn authenticate_by_token(
        &mut self,
        reply: &HelloReply<'_>,
        speculation: Option<Authentication>,
        cache: &mut ScramCache,
    ) {
        let description = Box::new(reply.description.clone());
        if let Some((mut conversation, reply)) = speculation.zip(reply.speculative)
            && let Ok(after) = conversation.speculative_reply(reply, cache)
        {
            self.phase = Phase::Authentication { conversation, description };
            return self.advance(after);
        }
        self.phase = Phase::Token { refused: None, description };
        if let Some(token) = self.token.take() {
            self.start_with(token, true);
        }
    }

    /// From [`Phase::Token`] on.
    fn start_with(&mut self, token: AccessToken, is_cached: bool) {
        let Phase::Token { description, .. } = &self.phase else { return };
        match Authentication::with_token(&token, &self.options) {
            Ok(conversation) => {
                let (first, description) = (conversation.first(), description.clone());
                self.phase = Phase::Authentication { conversation, description };
                (self.token, self.token_is_cached) = (Some(token), is_cached);
                self.advance(AfterReply::Send(first));
            }
            Err(error) => self.fail(error),
        }
    }

    fn advance(&mut self, after: AfterReply) {
        let Phase::Authentication { conversation, description } = &mut self.phase else { return };
        match after {
            AfterReply::Send(draft) => {
                let command = draft.send_to(conversation.source(), self.options.server_api);
                self.steps.push_back(Step::Send(command));
            }
            AfterReply::Derive => {}
            AfterReply::Authenticated => {
                description.mechanism = Some(conversation.mechanism());
                self.phase = Phase::Done(description.clone());
            }
        }
    }
}

fn is_authentication_failure(error: &ConnectionError) -> bool {
    error.command_error().is_some_and(CommandError::is_authentication_failure)
}
