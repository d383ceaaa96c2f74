use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::connect::AccessToken;
use cenote_core::error::{ConnectionError, Stage};

use super::{TokenCallback, TokenRequest};

/// How long a connection waits for a token at most.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The time between the end of a call and the next call at least.
const BETWEEN_CALLS: Duration = Duration::from_millis(100);

/// The callback of a client, and the last token that it returned, which all connections of all its pools use.
pub(crate) struct Tokens {
    callback: Arc<TokenCallback>,
    state: Mutex<State>,
    /// A call has ended.
    called: Condvar,
}

#[derive(Default)]
struct State {
    cached: Option<AccessToken>,
    /// The callback runs now.
    is_calling: bool,
    last_call: Option<Instant>,
}

impl Tokens {
    pub(crate) fn new(callback: Arc<TokenCallback>) -> Self {
        Self { callback, state: Mutex::default(), called: Condvar::new() }
    }

    /// The token that connections have used last.
    pub(crate) fn cached(&self) -> Option<AccessToken> {
        self.lock().cached.clone()
    }

    /// Forgets this token, unless there is a newer one.
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
        let waited = self.called.wait_timeout_while(self.lock(), left(), |state| state.is_calling);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = &state.cached {
            return Ok(token.clone());
        }
        if state.is_calling {
            return Err(failed("has not answered another connection in time"));
        }
        state.is_calling = true;
        let last_call = state.last_call;
        drop(state);
        if let Some(last_call) = last_call {
            thread::sleep(BETWEEN_CALLS.saturating_sub(last_call.elapsed()));
        }
        let token = self.call(&TokenRequest { username, timeout: left() });
        let mut state = self.lock();
        (state.is_calling, state.last_call) = (false, Some(Instant::now()));
        if let Ok(token) = &token {
            state.cached = Some(token.clone());
        }
        drop(state);
        self.called.notify_all();
        token
    }

    fn call(&self, request: &TokenRequest) -> Result<AccessToken, ConnectionError> {
        match catch_unwind(AssertUnwindSafe(|| (self.callback)(request))) {
            Ok(Ok(token)) if token.is_empty() => Err(failed("returned an empty token")),
            Ok(Ok(token)) => Ok(token),
            Ok(Err(error)) => Err(failed(&format!("failed: {error}")).with_source(error)),
            Err(_) => Err(failed("panicked")),
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
/// The callback is missing, or of no use.
pub(crate) fn check(uses_tokens: bool, has_callback: bool) -> Result<(), ConnectionError> {
    let reason = match (uses_tokens, has_callback) {
        (true, false) => {
            "MONGODB-OIDC needs a callback that returns access tokens: set it with `oidc_callback`"
        }
        (false, true) => {
            "a callback for access tokens is for MONGODB-OIDC: add authMechanism=MONGODB-OIDC to the connection string"
        }
        (true, true) | (false, false) => return Ok(()),
    };
    Err(ConnectionError::configuration(Stage::Authentication, reason))
}
