//! `mongodb+srv://`: looking the servers up before the client is built.

mod hosts;

use std::net::SocketAddr;
use std::time::Duration;

use cenote_core::client::SrvPolling;
use cenote_core::monitor::MonitorOptions;
use cenote_core::pool::Instant;
use cenote_core::uri::srv::{LookupError, SrvAnswers, SrvError, SrvOptions, SrvRecord};

use self::hosts::HostRules;
use super::{BuiltClient, ClientBuildError, ClientBuilder, ClientPlan};
use crate::builder::{BuildError, BuiltPool, FromUri};
use crate::client::name_service::{NameServers, Questions};
use crate::log;
use crate::runtime::platform::{environment, random};

/// How records are looked up, and what was found.
#[derive(Debug)]
pub(super) struct SrvSettings {
    pub(super) name_servers: NameServers,
    pub(super) shortest_interval: Duration,
    pub(super) rules: HostRules,
    /// The TTL of the records that were looked up.
    pub(super) ttl: Option<Duration>,
}

/// Whom a client asks for SRV records, and for how long.
pub(super) struct NameService {
    name_servers: NameServers,
    limit: Option<Duration>,
    srv: Option<SrvOptions>,
    rules: HostRules,
}

/// Of one answer: every record may be wrong.
const REPORTS_MAX: usize = 10;

impl NameService {
    /// The SRV records of this name, without those of hosts that are rejected.
    // SV-14
    pub(super) async fn records(&self, name: String) -> Result<Vec<SrvRecord>, LookupError> {
        let records = self.questions(name).ask().await.srv?;
        let Some(srv) = &self.srv else { return Ok(records) };
        let mut reports = 0;
        let report = |problem: SrvError| {
            reports += 1;
            if reports <= REPORTS_MAX {
                log::srv_records(&problem);
            }
        };
        self.rules.accepted(srv, records, report)
    }

    fn questions(&self, srv: String) -> Questions {
        let (name_servers, limit) = (self.name_servers.clone(), self.limit);
        Questions { srv, txt: None, name_servers, limit }
    }
}

impl Default for SrvSettings {
    fn default() -> Self {
        let shortest_interval = SrvPolling::SHORTEST_INTERVAL;
        let (name_servers, rules) = (NameServers::default(), HostRules::default());
        Self { name_servers, shortest_interval, rules, ttl: None }
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
    /// There are no servers, an answer breaks a rule of [`cenote_core::uri::srv`], there is no answer in time, or what
    /// says which hosts are accepted is contradictory or a public suffix.
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
        let plan = self.0.with_host_rules()?;
        let Some(questions) = plan.questions() else { return Ok(Self(plan)) };
        let answers = questions.ask().await;
        Ok(Self(plan.resolved(&answers)?))
    }
}

impl<P: BuiltPool<Connector: FromUri>> ClientPlan<P> {
    /// As [`ClientBuilder::resolve`], but blocks the thread, for a face that blocks.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::resolve`].
    pub fn resolve_blocking(self) -> Result<Self, ClientBuildError> {
        let plan = self.with_host_rules()?;
        let Some(questions) = plan.questions() else { return Ok(plan) };
        let answers = questions.ask_blocking();
        plan.resolved(&answers)
    }

    fn with_host_rules(mut self) -> Result<Self, ClientBuildError> {
        self.srv.rules.check(&self.uri)?;
        if let Some(srv) = self.uri.srv.take() {
            self.uri.srv = Some(self.srv.rules.apply(srv).map_err(BuildError::from)?);
        }
        Ok(self)
    }

    fn questions(&self) -> Option<Questions> {
        let srv = self.uri.srv.as_ref().filter(|_| self.uri.hosts.is_empty())?;
        let questions = self.name_service().questions(srv.srv_name());
        Some(Questions { txt: Some(srv.txt_name().to_owned()), ..questions })
    }

    fn resolved(mut self, answers: &SrvAnswers) -> Result<Self, ClientBuildError> {
        if let (Some(srv), Ok(records)) = (&self.uri.srv, &answers.srv) {
            self.srv.rules.validate_all(srv, records)?;
        }
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
            srv: self.uri.srv.clone(),
            rules: self.srv.rules.clone(),
        }
    }

    /// When the records are looked up again; `None` if they are not to be followed.
    pub(super) fn polling(&self, now: Instant) -> Option<SrvPolling> {
        SrvPolling::new(now, &self.uri, self.srv.ttl?, self.srv.shortest_interval)
    }
}
