//! `mongodb+srv://`: looking the servers up before the client is built.

use std::net::SocketAddr;
use std::time::Duration;

use cenote_core::client::SrvPolling;
use cenote_core::monitor::MonitorOptions;
use cenote_core::pool::Instant;
use cenote_core::uri::srv::SrvAnswers;

use super::{BuiltClient, ClientBuildError, ClientBuilder, ClientPlan};
use crate::builder::{BuiltPool, FromUri};
use crate::client::name_service::{NameServers, Questions};
use crate::log;
use crate::runtime::platform::{environment, random};

/// How records are looked up, and what was found.
#[derive(Debug)]
pub(super) struct SrvSettings {
    pub(super) name_servers: NameServers,
    pub(super) shortest_interval: Duration,
    /// The TTL of the records that were looked up.
    pub(super) ttl: Option<Duration>,
}

/// Whom a client asks for SRV records, and for how long.
pub(super) struct NameService {
    name_servers: NameServers,
    limit: Option<Duration>,
}

impl NameService {
    /// For the SRV records of this name.
    pub(super) fn questions(&self, srv: String) -> Questions {
        let Self { name_servers, limit } = self;
        Questions { srv, txt: None, name_servers: name_servers.clone(), limit: *limit }
    }
}

impl Default for SrvSettings {
    fn default() -> Self {
        let shortest_interval = SrvPolling::SHORTEST_INTERVAL;
        Self { name_servers: NameServers::default(), shortest_interval, ttl: None }
    }
}

impl<C: BuiltClient> ClientBuilder<C> {
    /// Looks SRV and TXT records up at these name servers (feature `srv`), by UDP and, where an answer is too long
    /// for that, by TCP. By default they are those of the operating system. The addresses of the servers themselves
    /// are looked up as for any other connection string.
    #[must_use]
    pub fn name_servers(mut self, servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.0.srv.name_servers = NameServers::from_iter(servers);
        self
    }

    /// Sets the shortest time between two looks at the SRV records (feature `srv`). The specification asks for
    /// [60 seconds](SrvPolling::SHORTEST_INTERVAL), the default: less is for tests with a name server of their own.
    #[must_use]
    pub const fn shortest_srv_interval(mut self, interval: Duration) -> Self {
        self.0.srv.shortest_interval = interval;
        self
    }

    /// Looks the servers of a `mongodb+srv://` connection string up (feature `srv`), and the options of its TXT
    /// record. Does nothing for another connection string, and for one that is resolved already.
    ///
    /// Takes `connectTimeoutMS` at most, 10 s by default. Runs on a thread of its own, on any runtime, or on none.
    /// Cancel-safe: dropping the future ends the look-up.
    ///
    /// # Errors
    ///
    /// There are no servers, an answer breaks a rule of [`cenote_core::uri::srv`], or there is no answer in time.
    ///
    /// ```no_run
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Client::builder("mongodb+srv://app:pencil@cluster.example.com/")?;
    /// let client = builder.resolve().await?.build()?;
    /// # Ok(())
    /// # }
    /// ```
    // SV-01
    pub async fn resolve(self) -> Result<Self, ClientBuildError> {
        let Some(questions) = self.0.questions() else { return Ok(self) };
        let answers = questions.ask().await;
        Ok(Self(self.0.resolved(&answers)?))
    }
}

impl<P: BuiltPool<Connector: FromUri>> ClientPlan<P> {
    /// As [`ClientBuilder::resolve`], but blocks the thread, for a face that blocks.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::resolve`].
    pub fn resolve_blocking(self) -> Result<Self, ClientBuildError> {
        let Some(questions) = self.questions() else { return Ok(self) };
        let answers = questions.ask_blocking();
        self.resolved(&answers)
    }

    fn questions(&self) -> Option<Questions> {
        let srv = self.uri.srv.as_ref().filter(|_| self.uri.hosts.is_empty())?;
        let questions = self.name_service().questions(srv.srv_name());
        Some(Questions { txt: Some(srv.txt_name().to_owned()), ..questions })
    }

    fn resolved(mut self, answers: &SrvAnswers) -> Result<Self, ClientBuildError> {
        let known = self.uri.warnings().len();
        self.uri = self.uri.resolve(answers, random)?;
        self.uri.warnings().iter().skip(known).for_each(log::connection_string);
        self.srv.ttl = Some(answers.ttl());
        self.monitoring = MonitorOptions::new(&self.uri, environment().is_faas());
        self.connector = self.connector.resolved(&self.uri);
        Ok(self)
    }
}

impl<P: BuiltPool> ClientPlan<P> {
    // SV-16
    pub(super) fn name_service(&self) -> NameService {
        let limit = self.uri.timeouts.connect.unwrap_or(Duration::from_secs(10));
        NameService {
            name_servers: self.srv.name_servers.clone(),
            limit: Some(limit).filter(|limit| !limit.is_zero()),
        }
    }

    /// When the records are looked up again; `None` if they are not to be followed.
    pub(super) fn polling(&self, now: Instant) -> Option<SrvPolling> {
        SrvPolling::new(now, &self.uri, self.srv.ttl?, self.srv.shortest_interval)
    }
}
