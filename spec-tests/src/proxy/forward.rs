//! One connection, and what passes on it.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::sleep;

use super::{ConnectionFault, Drip, End, Rules, Way};

/// What has passed on a connection.
#[derive(Debug, Default)]
pub(super) struct Cargo {
    turns: Vec<(Way, u64)>,
    total: u64,
}

/// So many turns are written down.
const TURNS: usize = 16;

impl Cargo {
    pub(super) fn turns(&self) -> &[(Way, u64)] {
        &self.turns
    }

    /// How many of so many bytes pass before the end, which is then noted as passed.
    fn load(&mut self, way: Way, count: usize, fault: ConnectionFault) -> usize {
        let left = fault.cut.map_or(u64::MAX, |(after, _)| after.saturating_sub(self.total));
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(count);
        self.total += count as u64;
        self.write_down(way, count as u64);
        count
    }

    fn write_down(&mut self, way: Way, count: u64) {
        let is_full = self.turns.len() >= TURNS;
        match self.turns.last_mut() {
            Some((last, bytes)) if *last == way => *bytes += count,
            Some(_) if is_full => {}
            Some(_) | None => self.turns.push((way, count)),
        }
    }

    /// The end, if it has come.
    fn end(&self, fault: ConnectionFault) -> Option<End> {
        fault.cut.filter(|(after, _)| self.total >= *after).map(|(_, end)| end)
    }
}

/// Carries what both sides say, as long as there is something to carry.
pub(super) async fn forward(
    mut near: TcpStream,
    mut far: TcpStream,
    fault: ConnectionFault,
    cargo: Arc<Mutex<Cargo>>,
    rules: &Rules,
) {
    // Small pieces leave at once; if that cannot be had, they leave later.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let end = {
        let (from_near, to_near) = near.split();
        let (from_far, to_far) = far.split();
        let route = |way| Route { way, fault, cargo: &cargo, rules };
        let upwards = route(Way::ToServer).forward(from_near, to_far);
        let downwards = route(Way::ToClient).forward(from_far, to_near);
        if let Some(end) = lock(&cargo).end(fault) {
            Some(end)
        } else {
            let mut ordered = rules.end.subscribe();
            tokio::pin!(upwards, downwards);
            let by_itself = async {
                tokio::select! {
                    over = &mut upwards => go_on(over, downwards).await,
                    over = &mut downwards => go_on(over, upwards).await,
                }
            };
            tokio::select! {
                end = by_itself => end,
                end = next(&mut ordered) => Some(end),
            }
        }
    };
    match end {
        Some(End::Reset) => [&near, &far].into_iter().for_each(reset),
        // Until one of them has enough of it.
        Some(End::Silence) => {
            tokio::select! {
                () = swallow(&mut near) => {}
                () = swallow(&mut far) => {}
            }
        }
        // Nothing is read any more, so that nothing is left unread which would make it a reset.
        Some(End::Close | End::HalfClose) | None => {}
    }
}

/// One way is over; whether the other one goes on depends on how.
async fn go_on(over: Option<End>, other: impl Future<Output = Option<End>>) -> Option<End> {
    match over {
        None | Some(End::HalfClose) => other.await,
        Some(End::Close | End::Reset | End::Silence) => over,
    }
}

/// The next order, if any may come.
async fn next(orders: &mut broadcast::Receiver<End>) -> End {
    loop {
        match orders.recv().await {
            Ok(order) => return order,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return pending().await,
        }
    }
}

/// One way.
struct Route<'a> {
    way: Way,
    fault: ConnectionFault,
    cargo: &'a Mutex<Cargo>,
    rules: &'a Rules,
}

impl Route<'_> {
    /// Until the connection ends as it was told to, or by itself (`None`).
    async fn forward(self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Option<End> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut buffer).await;
            self.rules.wait_until_whole().await;
            // A reset of one side resets the other.
            let Ok(read) = read else { return Some(End::Reset) };
            if read == 0 {
                if self.way == Way::ToClient {
                    self.rules.wait_until_ends_pass().await;
                }
                let _ = to.shutdown().await;
                return None;
            }
            buffer.truncate(read);
            if self.way == Way::ToClient {
                buffer = self.rules.crossed(buffer).await;
            }
            let read = buffer.len();
            if !self.fault.delay.is_zero() {
                sleep(self.fault.delay).await;
            }
            let end = {
                let mut cargo = lock(self.cargo);
                // Half a connection that has ended says nothing more.
                let has_ended = cargo.end(self.fault).is_some();
                let count = if has_ended { read } else { cargo.load(self.way, read, self.fault) };
                buffer.truncate(count);
                cargo.end(self.fault).filter(|_| !has_ended)
            };
            let written = self.write(&buffer, &mut to).await;
            buffer.resize(16 * 1024, 0);
            if end == Some(End::HalfClose) {
                let _ = to.shutdown().await;
            }
            if end.is_some() {
                return end;
            }
            if written.is_err() {
                return Some(End::Reset);
            }
        }
    }

    async fn write(&self, bytes: &[u8], to: &mut WriteHalf<'_>) -> io::Result<()> {
        let all_at_once = Drip { bytes: usize::MAX, every: Duration::ZERO };
        let Drip { bytes: piece, every } = self.fault.drip.unwrap_or(all_at_once);
        for piece in bytes.chunks(piece.max(1)) {
            self.rules.wait_until_whole().await;
            to.write_all(piece).await?;
            if !every.is_zero() {
                sleep(every).await;
            }
        }
        Ok(())
    }
}

/// Whatever is still to be sent is forgotten, and the other end is told so.
pub(super) fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Reads and discards.
async fn swallow(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

/// Poisoning is ignored: the counts are valid at any time.
fn lock(cargo: &Mutex<Cargo>) -> MutexGuard<'_, Cargo> {
    cargo.lock().unwrap_or_else(PoisonError::into_inner)
}
