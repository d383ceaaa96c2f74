//! The endpoint on the simulated network: its machine is the same as everywhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use cenote_endpoint::{ConnectionId, Output, Peer, Server, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, sleep_until};
use turmoil::net::{TcpListener, TcpStream};

pub(crate) const NAME: &str = "endpoint";
pub(crate) const PORT: u16 = 27_017;

/// A peer that says nothing for so long is taken to be gone, as TCP's keep-alive would find out.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The server and the way to its sockets. Survives crashes, as a disk would.
#[derive(Clone)]
pub(crate) struct Host(Rc<Inside>);

struct Inside {
    server: RefCell<Server>,
    orders: RefCell<BTreeMap<ConnectionId, UnboundedSender<Output>>>,
    rescheduled: Notify,
}

impl Host {
    pub(crate) fn new(seed: u64) -> Self {
        let settings = Settings { test_commands: true, ..Settings::seeded(seed) };
        let server = RefCell::new(Server::new(settings).expect("good settings"));
        Self(Rc::new(Inside { server, orders: RefCell::default(), rescheduled: Notify::new() }))
    }

    /// One process of it, until it crashes.
    pub(crate) async fn run(self) -> turmoil::Result {
        self.0.orders.borrow_mut().clear();
        self.act(now(), Server::restart);
        spawn_local(self.clone().keep_time());
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
        loop {
            let (stream, peer) = listener.accept().await?;
            spawn_local(self.clone().serve(stream, peer.to_string()));
        }
    }

    /// Does something with the server, and hands on what it orders.
    pub(crate) fn act<R>(&self, now: Duration, act: impl FnOnce(&mut Server, Duration) -> R) -> R {
        let mut server = self.0.server.borrow_mut();
        let result = act(&mut server, now);
        while let Some(output) = server.poll_output() {
            let id = match &output {
                Output::Send { id, .. }
                | Output::Close { id }
                | Output::Fin { id }
                | Output::Reset { id }
                | Output::HalfClose { id }
                | Output::StopReading { id }
                | Output::ResumeReading { id } => *id,
                Output::Listen(_) => continue,
            };
            if let Some(orders) = self.0.orders.borrow().get(&id) {
                let _ = orders.send(output);
            }
        }
        self.0.rescheduled.notify_one();
        result
    }

    /// Connections that the server believes to be open.
    pub(crate) fn open(&self) -> u64 {
        self.0.server.borrow().statistics().open
    }

    async fn keep_time(self) {
        loop {
            let due = self.0.server.borrow().next_deadline();
            let Some(due) = due else {
                self.0.rescheduled.notified().await;
                continue;
            };
            tokio::select! {
                biased;
                () = self.0.rescheduled.notified() => {}
                () = sleep_until(Instant::now() + due.saturating_sub(now())) => {
                    self.act(now(), Server::timer);
                }
            }
        }
    }

    async fn serve(self, stream: TcpStream, address: String) {
        let peer = Peer { address, certificate_subject: None };
        let (sender, orders) = unbounded_channel();
        let id = self.act(now(), |server, now| {
            let id = server.accepted(now, peer);
            self.0.orders.borrow_mut().insert(id, sender);
            id
        });
        // Whatever ended it, the socket is dropped with this.
        let _ = self.exchange(id, stream, orders).await;
        self.0.orders.borrow_mut().remove(&id);
        self.act(now(), |server, now| server.closed(now, id));
    }

    async fn exchange(
        &self,
        id: ConnectionId,
        mut stream: TcpStream,
        mut orders: UnboundedReceiver<Output>,
    ) -> std::io::Result<()> {
        let mut input = [0; 1024];
        let mut reads = true;
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Output::Send { bytes, .. }) => stream.write_all(&bytes).await?,
                    Some(Output::HalfClose { .. }) => stream.shutdown().await?,
                    Some(Output::StopReading { .. }) => reads = false,
                    Some(Output::ResumeReading { .. }) => reads = true,
                    Some(
                        Output::Close { .. }
                        | Output::Fin { .. }
                        | Output::Reset { .. }
                        | Output::Listen(_),
                    )
                    | None => return Ok(()),
                },
                read = stream.read(&mut input), if reads => match read? {
                    0 => return Ok(()),
                    count => self.act(now(), |server, now| {
                        server.received(now, id, &input[..count]);
                    }),
                },
                () = sleep(PATIENCE) => return Ok(()),
            }
        }
    }
}

fn now() -> Duration {
    turmoil::sim_elapsed().expect("in a world")
}
