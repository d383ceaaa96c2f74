//! Looks SRV and TXT records up, on a thread of its own for each time.
//!
//! The resolver is hickory's, on a tokio runtime that lives as long as the look-up and that nothing else sees. So it
//! is the same on every runtime, and needs no task of theirs.

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote_core::uri::srv::{LookupError, SrvAnswers, SrvRecord, TxtRecord};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record};
use tokio::runtime;
use tokio::sync::oneshot;

/// The name servers to ask.
#[derive(Clone, Debug, Default)]
pub(crate) enum NameServers {
    /// Those of the operating system.
    #[default]
    System,
    These(Arc<[SocketAddr]>),
}

impl FromIterator<SocketAddr> for NameServers {
    fn from_iter<T: IntoIterator<Item = SocketAddr>>(servers: T) -> Self {
        Self::These(servers.into_iter().collect())
    }
}

/// What to look up.
#[derive(Debug)]
pub(crate) struct Questions {
    pub(crate) srv: String,
    /// `None` asks for the SRV records alone.
    pub(crate) txt: Option<String>,
    pub(crate) name_servers: NameServers,
    /// How long both may take; `None` leaves it to the resolver, which gives up after some attempts.
    pub(crate) limit: Option<Duration>,
}

impl Questions {
    /// Dropping the future ends the thread.
    pub(crate) async fn ask(self) -> SrvAnswers {
        let (mut sender, receiver) = oneshot::channel();
        let started = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            let answers = self.run(sender.closed());
            drop(answers.map(|answers| sender.send(answers)));
        });
        match started {
            Ok(_) => receiver.await.unwrap_or_else(|_| failed(&"its thread panicked")),
            Err(error) => failed(&error),
        }
    }

    pub(crate) fn ask_blocking(self) -> SrvAnswers {
        // Not on the caller's thread, which may be a tokio runtime's.
        let work = move || self.run(std::future::pending());
        match thread::Builder::new().name(THREAD.to_owned()).spawn(work) {
            Ok(thread) => match thread.join() {
                Ok(Some(answers)) => answers,
                Ok(None) | Err(_) => failed(&"its thread panicked"),
            },
            Err(error) => failed(&error),
        }
    }

    /// `None` if `cancelled` is ready first.
    fn run(&self, cancelled: impl Future<Output = ()>) -> Option<SrvAnswers> {
        let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return Some(failed(&error)),
        };
        let answers = runtime.block_on(async {
            tokio::select! {
                answers = self.look_up() => Some(answers),
                () = cancelled => None,
            }
        });
        // Does not wait for the resolver's tasks.
        runtime.shutdown_background();
        answers
    }

    async fn look_up(&self) -> SrvAnswers {
        let resolver = match self.name_servers.resolver() {
            Ok(resolver) => resolver,
            Err(error) => return failed(&format_args!("the system's configuration: {error}")),
        };
        let srv = self.within_limit(srv_records(&resolver, &self.srv));
        let txt = async {
            match &self.txt {
                Some(name) => self.within_limit(txt_records(&resolver, name)).await,
                None => Ok(Vec::new()),
            }
        };
        let (srv, txt) = tokio::join!(srv, txt);
        SrvAnswers { srv, txt }
    }

    async fn within_limit<T>(
        &self,
        work: impl Future<Output = Result<T, NetError>>,
    ) -> Result<T, LookupError> {
        let begin = tokio::time::Instant::now();
        let result = match self.limit {
            Some(limit) => match tokio::time::timeout(limit, work).await {
                Ok(result) => result,
                Err(_) => return Err(LookupError::TimedOut { after: limit }),
            },
            None => work.await,
        };
        result.map_err(|error| reason(&error, begin.elapsed()))
    }
}

const THREAD: &str = "cenote-srv";

impl NameServers {
    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let mut builder = match self {
            Self::System => TokioResolver::builder_tokio()?,
            Self::These(servers) => {
                let servers = servers.iter().map(|server| {
                    let mut config = NameServerConfig::udp_and_tcp(server.ip());
                    config.connections.iter_mut().for_each(|it| it.port = server.port());
                    config
                });
                let config = ResolverConfig::from_name_servers(servers.collect());
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        let ResolverOpts { cache_size, edns0, .. } = builder.options_mut();
        (*cache_size, *edns0) = (0, true);
        builder.build()
    }
}

/// Names stay in Punycode, as the zone has them. Decoded, they would be outside of the `xn--` domain of the connection
/// string, and the operating system would not find them.
async fn srv_records(resolver: &TokioResolver, name: &str) -> Result<Vec<SrvRecord>, NetError> {
    let found = resolver.srv_lookup(absolute(name)?).await?;
    let record = |record: &Record| {
        let RData::SRV(data) = &record.data else { return None };
        let ttl = Duration::from_secs(record.ttl.into());
        Some(SrvRecord::new(data.target.to_ascii(), data.port).with_ttl(ttl))
    };
    Ok(found.answers().iter().filter_map(record).collect())
}

async fn txt_records(resolver: &TokioResolver, name: &str) -> Result<Vec<TxtRecord>, NetError> {
    let found = resolver.txt_lookup(absolute(name)?).await?;
    let record = |record: &Record| {
        let RData::TXT(data) = &record.data else { return None };
        Some(TxtRecord { strings: data.txt_data.iter().map(|string| string.to_vec()).collect() })
    };
    Ok(found.answers().iter().filter_map(record).collect())
}

/// The search list of the system is for names that people type into shells.
fn absolute(name: &str) -> Result<Name, ProtoError> {
    let mut name = if name.is_ascii() { Name::from_ascii(name) } else { Name::from_utf8(name) }?;
    name.set_fqdn(true);
    Ok(name)
}

fn reason(error: &NetError, after: Duration) -> LookupError {
    let code = if let NetError::Dns(DnsError::NoRecordsFound(found)) = error {
        found.response_code
    } else if let NetError::Dns(DnsError::ResponseCode(code)) = error {
        *code
    } else if matches!(error, NetError::Timeout) {
        return LookupError::TimedOut { after };
    } else {
        return LookupError::Failed(error.to_string());
    };
    if code == ResponseCode::NXDomain {
        LookupError::NotFound
    } else if code == ResponseCode::NoError {
        LookupError::NoRecords
    } else {
        LookupError::Failed(format!("the name server answered: {code}"))
    }
}

fn failed(reason: &dyn Display) -> SrvAnswers {
    let reason = LookupError::Failed(reason.to_string());
    SrvAnswers { srv: Err(reason.clone()), txt: Err(reason) }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::{Duration, Instant};

    use cenote_core::uri::srv::LookupError;
    use cenote_endpoint::{NameServer, NameServerFault};

    use super::Questions;

    fn unanswered(limit: Option<Duration>) -> (NameServer, Questions) {
        let names = NameServer::start().expect("a port");
        names.set_fault(Some(NameServerFault::Silent));
        let name_servers = [names.address()].into_iter().collect();
        let (srv, txt) = ("_mongodb._tcp.a.test".to_owned(), Some("a.test".to_owned()));
        (names, Questions { srv, txt, name_servers, limit })
    }

    #[test]
    fn a_look_up_that_is_given_up_ends_at_once() {
        let (_names, questions) = unanswered(None);
        let began = Instant::now();
        assert_eq!(questions.run(ready(())), None);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }

    #[test]
    fn both_questions_have_the_same_limit() {
        // On a busy machine it takes a while until both are asked.
        let limit = Duration::from_secs(1);
        let (names, questions) = unanswered(Some(limit));
        let answers = questions.run(pending()).expect("it was not given up");
        let late = LookupError::TimedOut { after: limit };
        assert_eq!((answers.srv, answers.txt), (Err(late.clone()), Err(late)));
        assert!(names.questions() >= 2);
    }
}
