//! A name server for tests: the SRV and TXT records that it is told, on a port of the loopback.

use std::collections::BTreeMap;
use std::future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use cenote_core::uri::srv::{SrvRecord, TxtRecord};
use hickory_proto::ProtoError;
use hickory_proto::op::{Message, Metadata, Query, ResponseCode};
use hickory_proto::rr::rdata::{SRV, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;

/// Answers questions for SRV and TXT records, by UDP and TCP on one port of 127.0.0.1, and ends when it is dropped.
/// A name without records does not exist.
///
/// ```
/// use cenote_core::uri::srv::{SrvRecord, TxtRecord};
/// use cenote_endpoint::NameServer;
///
/// let names = NameServer::start()?;
/// names.set_srv("_mongodb._tcp.cluster.test", &[SrvRecord::new("db1.cluster.test.", 27017)]);
/// names.set_txt("cluster.test", &[TxtRecord::from("replicaSet=rs0")]);
/// assert!(names.address().ip().is_loopback());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// How a [`NameServer`] fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameServerFault {
    /// It answers nothing.
    Silent,
    /// It answers that it has a problem (SERVFAIL).
    Failing,
}

/// By names in lower case, without the dot at their end.
#[derive(Debug, Default)]
struct Zone {
    srv: BTreeMap<String, Vec<SrvRecord>>,
    txt: BTreeMap<String, Vec<TxtRecord>>,
    fault: Option<NameServerFault>,
    questions: u64,
}

impl NameServer {
    /// On a free port.
    ///
    /// # Errors
    ///
    /// The operating system has no socket or no thread for it.
    pub fn start() -> io::Result<Self> {
        let (udp, tcp) = bind()?;
        let (address, zone) = (tcp.local_addr()?, Arc::<Mutex<Zone>>::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let of_thread = Arc::clone(&zone);
        let serve = async move {
            let (Ok(udp), Ok(tcp)) = (UdpSocket::from_std(udp), TcpListener::from_std(tcp)) else {
                return;
            };
            tokio::select! {
                () = datagrams(&udp, &of_thread) => {}
                () = streams(&tcp, &of_thread) => {}
                _ = stopped => {}
            }
        };
        let thread = thread::Builder::new().name("cenote-names".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve))?;
        Ok(Self { address, zone, thread: Some((stop, thread)) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the SRV records of a name; without any, there are none.
    pub fn set_srv(&self, name: &str, records: &[SrvRecord]) {
        set(&mut lock(&self.zone).srv, name, records);
    }

    /// Replaces the TXT records of a name; without any, there are none.
    pub fn set_txt(&self, name: &str, records: &[TxtRecord]) {
        set(&mut lock(&self.zone).txt, name, records);
    }

    /// Fails in this way from now on, or not any more.
    pub fn set_fault(&self, fault: Option<NameServerFault>) {
        lock(&self.zone).fault = fault;
    }

    /// How many questions have come, by UDP and TCP.
    #[must_use]
    pub fn questions(&self) -> u64 {
        lock(&self.zone).questions
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// A port that is free for both.
fn bind() -> io::Result<(std::net::UdpSocket, std::net::TcpListener)> {
    const ATTEMPTS: usize = 20;
    let mut failure = io::Error::other("no port is free for UDP and TCP");
    for _ in 0..ATTEMPTS {
        let tcp = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        match std::net::UdpSocket::bind(tcp.local_addr()?) {
            Ok(udp) => {
                udp.set_nonblocking(true)?;
                tcp.set_nonblocking(true)?;
                return Ok((udp, tcp));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn datagrams(socket: &UdpSocket, zone: &Mutex<Zone>) {
    let mut buffer = [0; 4096];
    loop {
        // An error is that of an earlier answer, which did not arrive.
        let Ok((length, peer)) = socket.recv_from(&mut buffer).await else { continue };
        let Some(reply) = reply_to(&buffer[..length], zone, true) else { continue };
        let _ = socket.send_to(&reply, peer).await;
    }
}

async fn streams(listener: &TcpListener, zone: &Mutex<Zone>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        // One at a time: a resolver asks its question and closes, and a test has few of them.
        let _ = stream_of_questions(stream, zone).await;
    }
}

/// Each message has its length in front.
async fn stream_of_questions(mut stream: TcpStream, zone: &Mutex<Zone>) -> io::Result<()> {
    loop {
        let mut message = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut message).await?;
        let Some(reply) = reply_to(&message, zone, false) else {
            return future::pending().await;
        };
        let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&reply).await?;
    }
}

/// `None` is no answer.
fn reply_to(message: &[u8], zone: &Mutex<Zone>, is_datagram: bool) -> Option<Vec<u8>> {
    let asked = Message::from_vec(message).ok()?;
    let query = asked.queries.first()?.clone();
    let mut reply = Message::query();
    reply.metadata = Metadata::response_from_request(&asked.metadata);
    (reply.metadata.authoritative, reply.metadata.recursion_available) = (true, true);
    let mut zone = lock(zone);
    zone.questions += 1;
    match zone.fault {
        Some(NameServerFault::Silent) => return None,
        Some(NameServerFault::Failing) => reply.metadata.response_code = ResponseCode::ServFail,
        None => match zone.records(&query).ok()? {
            Some(records) => reply.answers = records,
            None => reply.metadata.response_code = ResponseCode::NXDomain,
        },
    }
    reply.add_query(query);
    let bytes = reply.to_vec().ok()?;
    if is_datagram && bytes.len() > usize::from(asked.max_payload()) {
        return reply.truncate().to_vec().ok();
    }
    Some(bytes)
}

impl Zone {
    /// `None` if the name does not exist.
    fn records(&self, query: &Query) -> Result<Option<Vec<Record>>, ProtoError> {
        let name = key(&query.name().to_ascii());
        let (srv, txt) = (self.srv.get(&name), self.txt.get(&name));
        if srv.is_none() && txt.is_none() {
            return Ok(None);
        }
        let of = |ttl, data| Record::from_rdata(query.name().clone(), ttl, data);
        let asked = query.query_type();
        let srv = srv.into_iter().flatten().filter(|_| asked == RecordType::SRV).map(|record| {
            let ttl = u32::try_from(record.ttl.as_secs()).unwrap_or(u32::MAX);
            let mut target = Name::from_ascii(&record.target)?;
            target.set_fqdn(true);
            Ok(of(ttl, RData::SRV(SRV::new(0, 0, record.port, target))))
        });
        let txt = txt.into_iter().flatten().filter(|_| asked == RecordType::TXT).map(|record| {
            let strings = record.strings.iter().map(|string| &**string).collect();
            Ok(of(0, RData::TXT(TXT::from_bytes(strings))))
        });
        srv.chain(txt).collect::<Result<_, ProtoError>>().map(Some)
    }
}

fn set<T: Clone>(records: &mut BTreeMap<String, Vec<T>>, name: &str, of_name: &[T]) {
    if of_name.is_empty() {
        records.remove(&key(name));
    } else {
        records.insert(key(name), of_name.to_vec());
    }
}

fn key(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_lowercase()
}

fn lock(zone: &Mutex<Zone>) -> MutexGuard<'_, Zone> {
    zone.lock().unwrap_or_else(PoisonError::into_inner)
}
