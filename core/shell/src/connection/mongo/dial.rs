//! From a name to a socket: name resolution, happy eyeballs, the proxy.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ProxyOptions;

use super::drive::hold;
use super::limit::Limit;
use super::{MongoConnector, proxy};
use crate::connection::shortage::is_local;
use crate::connection::stages::Stages;
use crate::runtime::{Network, lookup, timeout_at};

/// How long one attempt to connect has before the next address is tried as well (RFC 8305, section
/// 5).
const STAGGER: Duration = Duration::from_millis(250);

/// How long a resolver is waited for while there are addresses from before.
const PATIENCE: Duration = Duration::from_secs(1);

impl<R: Network> MongoConnector<R> {
    /// A socket to the server, without TLS yet.
    // CS-04
    pub(super) async fn dial(
        &self,
        runtime: &R,
        address: &ServerAddress,
        limit: Limit,
        stages: &Stages,
    ) -> Result<R::Stream, ConnectionError> {
        if let ServerAddress::Unix { path } = address {
            stages.enter(Stage::Tcp);
            let connected = hold(runtime, limit, pin!(runtime.connect_unix(path))).await;
            return connected.map_err(|error| error.at(Stage::Tcp));
        }
        if let Some(proxy) = self.settings.proxy() {
            let port = proxy.port.unwrap_or(ProxyOptions::DEFAULT_PORT);
            stages.enter(Stage::Proxy);
            let both = [Stage::Proxy, Stage::Proxy];
            let target = (proxy.host.as_str(), port);
            let mut stream = self.connect_tcp(runtime, target, both, limit, stages).await?;
            proxy::tunnel(runtime, &mut stream, address, proxy, limit).await?;
            return Ok(stream);
        }
        let port = address.port().unwrap_or(ServerAddress::DEFAULT_PORT);
        let target = (address.host(), port);
        self.connect_tcp(runtime, target, [Stage::Dns, Stage::Tcp], limit, stages).await
    }

    /// The stages are those of resolving and of connecting.
    async fn connect_tcp(
        &self,
        runtime: &R,
        (host, port): (&str, u16),
        [resolving, connecting]: [Stage; 2],
        limit: Limit,
        stages: &Stages,
    ) -> Result<R::Stream, ConnectionError> {
        let lookup = async {
            if let Ok(address) = host.parse::<IpAddr>() {
                return Ok(vec![SocketAddr::new(address, port)]);
            }
            stages.enter(resolving);
            match &self.resolver {
                Some(resolver) => lookup::ask(&**resolver, host, port).await,
                None => runtime.resolve(host, port).await,
            }
        };
        let found = {
            let lookup = pin!(lookup);
            let lookup = pin!(hold(runtime, limit, lookup));
            match self.last_addresses.get(host, port) {
                Some(last) => {
                    let answer = timeout_at(runtime, patience(R::now(), limit), lookup).await;
                    answer.unwrap_or(Ok(last))
                }
                None => lookup.await,
            }
        };
        let found = found.map_err(|error| error.at(resolving))?;
        let addresses = alternate(found);
        if addresses.is_empty() {
            return Err(ConnectionError::network(resolving, "the name has no address"));
        }
        stages.enter(connecting);
        let connected = hold(runtime, limit, pin!(race(runtime, addresses.clone()))).await;
        let stream = connected.map_err(|error| error.at(connecting))?;
        self.last_addresses.learn(host, port, addresses);
        Ok(stream)
    }
}

/// Until when a resolver has time while there are addresses from before.
fn patience(now: Instant, limit: Limit) -> Instant {
    let left = limit.next(|| now).map(|deadline| deadline.at.saturating_duration_since(now) / 2);
    now + left.map_or(PATIENCE, |left| left.min(PATIENCE))
}

/// The first connection that is established. Each next address is tried when an attempt has failed,
/// or after [`STAGGER`]; the other attempts are dropped.
async fn race<R: Network>(runtime: &R, addresses: Vec<SocketAddr>) -> io::Result<R::Stream> {
    type Attempt<'a, S> = Pin<Box<dyn Future<Output = io::Result<S>> + Send + 'a>>;
    let mut attempts: Vec<Attempt<'_, R::Stream>> = Vec::new();
    let mut failure = None;
    let mut addresses = addresses.into_iter();
    loop {
        let next = addresses.next();
        let has_next = next.is_some();
        if let Some(address) = next {
            attempts.push(Box::pin(runtime.connect(address)));
        } else if attempts.is_empty() {
            return Err(failure.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into()));
        }
        let mut stagger = pin!(has_next.then(|| runtime.sleep_until(R::now() + STAGGER)));
        let ended = poll_fn(|cx| {
            for index in 0..attempts.len() {
                let Some(attempt) = attempts.get_mut(index) else { break };
                if let Poll::Ready(outcome) = attempt.as_mut().poll(cx) {
                    drop(attempts.remove(index));
                    return Poll::Ready(Some(outcome));
                }
            }
            match stagger.as_mut().as_pin_mut() {
                Some(stagger) => stagger.poll(cx).map(|()| None),
                None => Poll::Pending,
            }
        });
        match ended.await {
            Some(Ok(stream)) => return Ok(stream),
            // The first error is that of the preferred address, if it was asked.
            Some(Err(error)) => match &failure {
                Some(first) if !is_local(Stage::Tcp, first) => {}
                Some(_) if is_local(Stage::Tcp, &error) => {}
                Some(_) | None => failure = Some(error),
            },
            None => {}
        }
    }
}

/// The two address families in turn, beginning with the one that the system prefers (RFC 8305,
/// section 4).
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().copied() else { return addresses };
    let (preferred, others): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first.is_ipv4());
    let mut ordered = Vec::with_capacity(preferred.len() + others.len());
    let (mut preferred, mut others) = (preferred.into_iter(), others.into_iter());
    loop {
        let pair = [preferred.next(), others.next()];
        if pair == [None, None] {
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use cenote_core::error::Stage;
    use tokio::io::duplex;
    use tokio::time::Instant;

    use super::super::test_runtime::{Attempt, TestRuntime};
    use super::{Limit, MongoConnector, alternate, race};
    use crate::connection::Lookup;
    use crate::connection::shortage::codes;
    use crate::connection::stages::Stages;

    #[test]
    fn families_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let found = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(address);
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address);
        assert_eq!(alternate(found.to_vec()), expected);
        assert_eq!(alternate(Vec::new()), Vec::new());
    }

    fn connector(uri: &str) -> MongoConnector<TestRuntime> {
        MongoConnector::new(&uri.parse().unwrap()).unwrap()
    }

    /// Dials `db`, whose addresses are 10.0.0.1 and so on, one for each attempt. Returns after how
    /// many milliseconds each attempt began and the end came, and the stage and text of the error.
    async fn dial(attempts: Vec<Attempt>) -> (Vec<u128>, u128, Option<(Stage, String)>) {
        let addresses = (1..=attempts.len()).map(|n| [10, 0, 0, u8::try_from(n).unwrap()].into());
        let connector = connector("mongodb://db").with_addresses(addresses.collect());
        let (begin, begun) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let (noted, attempts) = (Arc::clone(&begun), Mutex::new(attempts));
        let runtime = TestRuntime::new(move |_| {
            noted.lock().unwrap().push(begin.elapsed().as_millis());
            attempts.lock().unwrap().remove(0)
        });
        let limit = connector.settings.opening(begin.into_std());
        let outcome =
            connector.dial(&runtime, &"db:7".parse().unwrap(), limit, &Stages::default()).await;
        let error = outcome.err().map(|error| (error.stage(), error.to_string()));
        let begun = begun.lock().unwrap().clone();
        (begun, begin.elapsed().as_millis(), error)
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_address_is_tried_after_a_failure_or_a_while() {
        let connected = || Attempt::Connected(duplex(1).0);
        assert_eq!(dial(vec![connected(), connected()]).await, (vec![0], 0, None));
        let (begun, end, error) = dial(vec![Attempt::Silent, connected()]).await;
        assert_eq!((begun, error), (vec![0, 250], None));
        assert!((250..260).contains(&end), "{end}");
        let (begun, _, error) =
            dial(vec![Attempt::Refused, Attempt::Silent, Attempt::Refused, connected()]).await;
        assert_eq!((begun, error), (vec![0, 0, 250, 250], None));
        let (_, end, error) = dial(vec![Attempt::Refused, Attempt::Refused]).await;
        assert_eq!((end, error.unwrap().0), (0, Stage::Tcp));
        let (_, end, error) = dial(vec![Attempt::Silent, Attempt::Refused]).await;
        assert_eq!(error.unwrap().0, Stage::Tcp);
        assert!((10_000..10_010).contains(&end), "connectTimeoutMS: {end}");
    }

    /// The first answer leads to a connection; after it the resolver is silent.
    #[tokio::test(start_paused = true)]
    async fn without_an_answer_the_last_addresses_are_used() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let connector = connector("mongodb://db,other").with_resolver(move |lookup| {
            let mut asked = kept.lock().unwrap();
            if asked.is_empty() {
                lookup.answer(Ok(vec![([10, 0, 0, 1], 7).into()]));
                return asked.push(None);
            }
            asked.push(Some(lookup));
        });
        let runtime = TestRuntime::new(|address| {
            assert_eq!(address, ([10, 0, 0, 1], 7).into());
            Attempt::Connected(duplex(1).0)
        });
        let dial = async |host: &str, time: Option<Duration>| {
            let begin = Instant::now();
            let limit = Limit::of(begin.into_std(), time.unwrap_or(Duration::from_secs(10)));
            let dialled =
                connector.dial(&runtime, &host.parse().unwrap(), limit, &Stages::default()).await;
            (dialled.map(drop).map_err(|error| error.stage()), begin.elapsed().as_millis())
        };
        assert_eq!(dial("db:7", None).await, (Ok(()), 0));
        let (outcome, after) = dial("db:7", None).await;
        assert_eq!(outcome, Ok(()));
        assert!((1000..1010).contains(&after), "{after}");
        let (outcome, after) = dial("db:7", Some(Duration::from_millis(600))).await;
        assert_eq!(outcome, Ok(()));
        assert!((300..310).contains(&after), "half of the time: {after}");
        // Another name, or port, has no addresses from before.
        for host in ["other:7", "db:8"] {
            assert_eq!(dial(host, None).await.0, Err(Stage::Dns));
        }
        assert_eq!(asked.lock().unwrap().len(), 5);
    }

    /// The first error counts, but one that the server had no part in counts last.
    #[tokio::test(start_paused = true)]
    async fn of_several_addresses_the_first_error_of_the_network_counts() {
        // Of the network on Linux; on no operating system a shortage.
        const REFUSED: i32 = 111;
        const UNREACHABLE: i32 = 113;
        let runtime = TestRuntime::new(|address| Attempt::Fails(address.port().into()));
        for (errors, expected) in [
            ([codes::PROCESS_FILES, REFUSED, UNREACHABLE], REFUSED),
            ([REFUSED, codes::PROCESS_FILES, UNREACHABLE], REFUSED),
            (
                [codes::PROCESS_FILES, codes::SYSTEM_FILES, codes::SYSTEM_FILES],
                codes::PROCESS_FILES,
            ),
        ] {
            let address = |code: i32| ([10, 0, 0, 1], u16::try_from(code).unwrap()).into();
            let error = race(&runtime, errors.map(address).to_vec()).await.err().unwrap();
            assert_eq!(error.raw_os_error(), Some(expected), "{errors:?}");
        }
    }

    async fn resolve(uri: &str, resolver: impl Fn(Lookup) + Send + Sync + 'static) -> Stage {
        let connector = connector(uri).with_resolver(resolver);
        let runtime = TestRuntime::new(|_| Attempt::Refused);
        let limit = connector.settings.opening(Instant::now().into_std());
        let address = uri.trim_start_matches("mongodb://").parse().unwrap();
        connector.dial(&runtime, &address, limit, &Stages::default()).await.err().unwrap().stage()
    }

    #[tokio::test(start_paused = true)]
    async fn resolvers_answer_later_or_not_at_all() {
        let found = |lookup: Lookup| {
            assert_eq!((lookup.host(), lookup.port()), ("db", 7));
            // Later, and from another thread; the paused clock does not wait for that.
            tokio::spawn(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let answer = || lookup.answer(Ok(vec![([10, 0, 0, 1], 7).into()]));
                std::thread::spawn(answer).join().unwrap();
            });
        };
        assert_eq!(resolve("mongodb://db:7", found).await, Stage::Tcp);
        assert_eq!(resolve("mongodb://db:7", drop).await, Stage::Dns);
        assert_eq!(
            resolve("mongodb://db:7", |lookup| lookup.answer(Ok(Vec::new()))).await,
            Stage::Dns
        );
        let failed = |lookup: Lookup| lookup.answer(Err(io::ErrorKind::NotFound.into()));
        assert_eq!(resolve("mongodb://db:7", failed).await, Stage::Dns);
        let kept = Mutex::new(Vec::new());
        let keep = move |lookup| kept.lock().unwrap().push(lookup);
        assert_eq!(resolve("mongodb://db:7", keep).await, Stage::Dns);
        let never = |_| unreachable!("an IP address is not resolved");
        assert_eq!(resolve("mongodb://10.0.0.1:7", never).await, Stage::Tcp);
        assert_eq!(resolve("mongodb://[::1]:7", never).await, Stage::Tcp);
    }
}
