use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::connect::{AccessToken, EstablishOptions};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::Credential;

use super::{TokenCallback, TokenRequest, environment};
use crate::runtime::contain;
use crate::runtime::process::Process;

/// How long a connection waits for a token at most.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The time between the end of a call and the next call at least.
const BETWEEN_CALLS: Duration = Duration::from_millis(100);

/// The callback of a client, and the last token that it returned, which all connections of all its pools use.
// OI-06
pub(crate) struct Tokens {
    callback: Arc<TokenCallback>,
    /// The callback is that of an `ENVIRONMENT`.
    is_built_in: bool,
    state: Mutex<State>,
    /// A call has ended.
    called: Condvar,
}

#[derive(Default)]
struct State {
    cached: Option<AccessToken>,
    /// The process in which the callback runs now: a forked child has none of its parent's threads.
    calling: Option<Process>,
    last_call: Option<Instant>,
}

impl State {
    fn is_calling(&self) -> bool {
        self.calling.is_some_and(Process::is_current)
    }
}

impl Tokens {
    pub(crate) fn new(callback: Arc<TokenCallback>) -> Self {
        Self { callback, is_built_in: false, state: Mutex::default(), called: Condvar::new() }
    }

    /// Tokens of the platform that the credential names, if it does.
    // OI-05
    pub(crate) fn of_environment(credential: &Credential) -> Option<Self> {
        let callback = environment::callback(credential)?;
        Some(Self { is_built_in: true, ..Self::new(callback) })
    }

    pub(crate) const fn is_built_in(&self) -> bool {
        self.is_built_in
    }

    /// The token that connections have used last.
    pub(crate) fn cached(&self) -> Option<AccessToken> {
        self.lock().cached.clone()
    }

    /// Forgets this token, unless there is a newer one.
    // OI-08
    pub(crate) fn invalidate(&self, token: &AccessToken) {
        self.lock().cached.take_if(|cached| cached == token);
    }

    pub(crate) fn forget(&self) {
        self.lock().cached = None;
    }

    /// Another token than the one that was refused: of the cache, or of the callback, which is called one at a time.
    /// Blocks for `timeout`, and a minute at the latest, while another call is under way, and then for as long as the callback
    /// does. The token of a call whose connection does not wait any more is kept for the next one.
    ///
    /// # Errors
    ///
    /// The callback fails, panics, returns an empty token, or runs for another connection for too long.
    // AU-55, OI-07
    pub(crate) fn fetch(
        &self,
        username: Option<String>,
        refused: Option<&AccessToken>,
        timeout: Duration,
    ) -> Result<AccessToken, ConnectionError> {
        if let Some(refused) = refused {
            self.invalidate(refused);
        }
        let deadline = Instant::now() + timeout.min(LONGEST_WAIT);
        let left = || deadline.saturating_duration_since(Instant::now());
        let is_calling = |state: &mut State| state.is_calling();
        let waited = self.called.wait_timeout_while(self.lock(), left(), is_calling);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = &state.cached {
            return Ok(token.clone());
        }
        if state.is_calling() {
            return Err(failed("has not answered another connection in time"));
        }
        state.calling = Some(Process::current());
        let last_call = state.last_call;
        drop(state);
        if let Some(last_call) = last_call {
            thread::sleep(BETWEEN_CALLS.saturating_sub(last_call.elapsed()));
        }
        let token =
            self.call(&TokenRequest { username, timeout: left(), version: TokenRequest::VERSION });
        let mut state = self.lock();
        (state.calling, state.last_call) = (None, Some(Instant::now()));
        if let Ok(token) = &token {
            state.cached = Some(token.clone());
        }
        drop(state);
        self.called.notify_all();
        token
    }

    fn call(&self, request: &TokenRequest) -> Result<AccessToken, ConnectionError> {
        match contain(|| (self.callback)(request)) {
            Some(Ok(token)) if token.is_empty() => Err(failed("returned an empty token")),
            Some(Ok(token)) => Ok(token),
            Some(Err(error)) => Err(failed(&format!("failed: {error}")).with_source(error)),
            None => Err(failed("panicked")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(how: &str) -> ConnectionError {
    let reason = format!("the callback for access tokens {how}");
    ConnectionError::configuration(Stage::Authentication, &reason)
}

/// # Errors
///
/// The callback is missing, or of no use. `tokens` come from either source.
// OI-01
pub(crate) fn check(
    options: &EstablishOptions,
    tokens: Option<&Tokens>,
) -> Result<(), ConnectionError> {
    let configuration = |reason| Err(ConnectionError::configuration(Stage::Authentication, reason));
    let has_callback = tokens.is_some_and(|tokens| !tokens.is_built_in());
    let names_environment = options.credential.as_ref().is_some_and(environment::is_named);
    match (options.uses_access_tokens(), has_callback) {
        (true, true) if names_environment => configuration(
            "MONGODB-OIDC takes its access tokens from ENVIRONMENT or from a callback: leave one of them out",
        ),
        (true, false) if !names_environment => Err(callback_missing()),
        (false, true) => configuration(
            "a callback for access tokens is for MONGODB-OIDC: add authMechanism=MONGODB-OIDC to the connection string",
        ),
        (true, true | false) | (false, false) => Ok(()),
    }
}

pub(crate) fn callback_missing() -> ConnectionError {
    let reason = "MONGODB-OIDC needs a callback that returns access tokens: set it with `oidc_callback`, or name an \
                  ENVIRONMENT in authMechanismProperties";
    ConnectionError::configuration(Stage::Authentication, reason)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use cenote_core::connect::AccessToken;

    use super::{Process, Tokens};

    #[test]
    fn a_call_of_the_parent_process_is_none_of_the_child() {
        let tokens = Tokens::new(Arc::new(|_| Ok(AccessToken::new("token"))));
        tokens.lock().calling = Some(Process(Process::current().0 + 1));
        tokens.fetch(None, None, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_call_that_does_not_end_holds_no_other_connection_for_ever() {
        let tokens = Tokens::new(Arc::new(|_| Ok(AccessToken::new("token"))));
        tokens.lock().calling = Some(Process::current());
        let error = tokens.fetch(None, None, Duration::from_millis(1)).unwrap_err();
        let expected = "the callback for access tokens has not answered another connection in time";
        assert_eq!(error.reason(), expected);
    }

    // OI-08
    #[test]
    fn only_the_token_that_was_refused_is_forgotten() {
        let old = AccessToken::new("old");
        let tokens = Tokens::new(Arc::new(|_| Ok(AccessToken::new("new"))));
        let new = tokens.fetch(None, Some(&old), Duration::from_secs(9)).unwrap();
        tokens.invalidate(&old);
        assert_eq!(tokens.cached(), Some(new.clone()));
        tokens.invalidate(&new);
        assert_eq!(tokens.cached(), None);
    }

    /// One call at a time, and one for all that wait.
    // OI-07
    #[test]
    fn connections_that_wait_share_a_call() {
        let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let called = Arc::clone(&calls);
        let tokens = Tokens::new(Arc::new(move |_| {
            called.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            thread::sleep(Duration::from_millis(50));
            Ok(AccessToken::new("token"))
        }));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| tokens.fetch(None, None, Duration::from_secs(9)).unwrap());
            }
        });
        assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
