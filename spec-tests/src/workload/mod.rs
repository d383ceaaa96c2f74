//! What benchmarks and allocation tests measure: small scenes on a pool, each repeatable as often
//! as one likes.

mod callgrind;
mod on_mio;
mod on_socket;
mod on_tokio;

use std::hint::black_box;
use std::time::Duration;

use cenote_core::pool::{
    Action, ActionSink, ConnId, Health, Input, Instant, NoPayload, PoolOptions, PoolState, Purpose,
    WaiterId, WithoutEvents,
};
use cenote_core::trace::Recorder;

pub use callgrind::instructions_of;
pub use on_mio::WarmOnMio;
pub use on_socket::OnSocket;
pub use on_tokio::{Numbers, WarmOnTokio, share_on_tokio};

/// A shell with payloads as small as a real one's: a slot number each.
#[derive(Clone, Copy, Debug)]
pub enum Small {}

impl cenote_core::pool::PoolTypes for Small {
    type Conn = u64;
    type Waiter = u64;
    type Cause = u32;
}

/// Sees what was delivered and drops everything else: the least that a shell does.
#[derive(Debug, Default)]
pub struct Delivered {
    last: Option<(ConnId, u64)>,
}

impl ActionSink<Small> for Delivered {
    #[inline]
    fn act(&mut self, action: Action<Small>) {
        match action {
            Action::Deliver { outcome: Ok(delivered), .. } => self.last = Some(delivered),
            Action::EmitEvent(_)
            | Action::Deliver { .. }
            | Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. } => {}
        }
    }
}

/// A ready pool with one idle connection.
pub struct Warm {
    pool: PoolState<Small>,
    next: u64,
    now: Instant,
}

impl Warm {
    /// # Panics
    ///
    /// When the options are invalid.
    pub fn new(options: PoolOptions) -> Self {
        let mut out = Vec::new();
        let now = Instant::ORIGIN;
        let mut pool = PoolState::new(now, options, &mut out).expect("valid options");
        feed(&mut pool, now, Input::Ready, &mut out);
        let mut warm = Self { pool, next: 1, now };
        feed(&mut warm.pool, now, request(0), &mut out);
        let id = out.iter().find_map(started).expect("a connection was started");
        feed(&mut warm.pool, now, Input::EstablishSucceeded { id, conn: 7 }, &mut out);
        feed(&mut warm.pool, now, returned(id, 7), &mut out);
        warm
    }

    /// Check out and check in without event subscribers.
    #[inline(never)]
    pub fn silent_pair(&mut self) {
        let mut delivered = Delivered::default();
        let id = self.next;
        self.next += 1;
        feed(&mut self.pool, self.now, request(id), &mut WithoutEvents(&mut delivered));
        let (id, conn) = delivered.last.expect("an idle connection");
        feed(&mut self.pool, self.now, returned(id, conn), &mut WithoutEvents(&mut delivered));
    }

    /// The same in moving time.
    #[inline(never)]
    pub fn timed_pair(&mut self) {
        self.now = self.now + Duration::from_nanos(50);
        self.silent_pair();
    }

    /// Check out and check in with every event and action collected in a buffer that is used again.
    #[inline(never)]
    pub fn buffered_pair(&mut self, buffer: &mut Vec<Action<Small>>) {
        buffer.clear();
        let id = self.next;
        self.next += 1;
        feed(&mut self.pool, self.now, request(id), buffer);
        let Some(&Action::Deliver { outcome: Ok((id, conn)), .. }) = buffer.last() else {
            unreachable!("an idle connection")
        };
        feed(&mut self.pool, self.now, returned(id, conn), buffer);
    }

    /// The same as [`silent_pair`](Self::silent_pair) through the entry points for what is served at once.
    #[inline(never)]
    pub fn silent_pair_at_once(&mut self) {
        self.pair_at_once(&mut WithoutEvents(&mut Delivered::default()));
    }

    /// The same with every event collected in a buffer that is used again.
    #[inline(never)]
    pub fn buffered_pair_at_once(&mut self, buffer: &mut Vec<Action<Small>>) {
        buffer.clear();
        self.pair_at_once(buffer);
    }

    #[inline(always)]
    fn pair_at_once(&mut self, out: &mut impl ActionSink<Small>) {
        let (now, id) = (self.now, WaiterId(self.next));
        self.next += 1;
        let delivered = self.pool.check_out_at_once(now, id, Purpose::Other, out);
        let (id, conn) = black_box(delivered).expect("an idle connection");
        self.pool.check_in_at_once(now, id, conn, out).expect("a connection in use");
    }
}

/// A ready pool with one idle connection, and a flight recorder that may be off.
pub struct Recorded {
    pool: Recorder<Small>,
    next: u64,
    now: Instant,
}

impl Recorded {
    /// With so many bytes for the flight recorder, if any.
    pub fn new(options: PoolOptions, bytes: Option<usize>) -> Self {
        let Warm { pool, next, now } = Warm::new(options);
        let pool = Recorder::new(pool);
        let pool = match bytes {
            Some(bytes) => pool.with_flight_recorder(bytes),
            None => pool,
        };
        Self { pool, next, now }
    }

    /// Check out and check in without event subscribers, in moving time.
    #[inline(never)]
    pub fn timed_pair(&mut self) {
        self.now = self.now + Duration::from_nanos(50);
        let mut delivered = Delivered::default();
        let id = self.next;
        self.next += 1;
        let out = &mut WithoutEvents(&mut delivered);
        self.pool.handle(self.now, request(id), out).expect("a legal input");
        let (id, conn) = delivered.last.expect("an idle connection");
        let out = &mut WithoutEvents(&mut delivered);
        self.pool.handle(self.now, returned(id, conn), out).expect("a legal input");
    }
}

/// A ready pool whose only connection is in use, so that all that ask must wait.
pub struct Busy {
    pool: PoolState<Small>,
    id: ConnId,
    next: u64,
}

impl Busy {
    /// # Panics
    ///
    /// When the options are invalid.
    pub fn new(options: PoolOptions) -> Self {
        let mut out = Vec::new();
        let options = options.with_max_pool_size(1);
        let mut pool = PoolState::new(Instant::ORIGIN, options, &mut out).expect("valid options");
        feed(&mut pool, Instant::ORIGIN, Input::Ready, &mut out);
        feed(&mut pool, Instant::ORIGIN, request(0), &mut out);
        let id = out.iter().find_map(started).expect("a connection was started");
        feed(&mut pool, Instant::ORIGIN, Input::EstablishSucceeded { id, conn: 7 }, &mut out);
        Self { pool, id, next: 1 }
    }

    /// `n` requests wait, each in its own nanosecond.
    pub fn enqueue(&mut self, n: u64) {
        let mut delivered = Delivered::default();
        for _ in 0..n {
            let now = Instant::from_nanos(self.next);
            feed(&mut self.pool, now, request(self.next), &mut WithoutEvents(&mut delivered));
            self.next += 1;
        }
    }

    /// Each of `n` waiting requests is served, one after the other.
    pub fn serve(&mut self, n: u64) {
        let mut delivered = Delivered::default();
        let now = Instant::from_nanos(self.next);
        for _ in 0..n {
            feed(&mut self.pool, now, returned(self.id, 7), &mut WithoutEvents(&mut delivered));
            assert!(delivered.last.take().is_some(), "a request waited");
        }
    }

    /// Cancels request `id`.
    pub fn cancel(&mut self, id: u64) {
        let mut delivered = Delivered::default();
        let input = Input::CheckOutCancelled { id: WaiterId(id) };
        let now = self.pool.now();
        feed(&mut self.pool, now, input, &mut WithoutEvents(&mut delivered));
    }

    /// Times all requests out.
    pub fn time_out_all(&mut self) {
        let now = self.pool.now() + Duration::from_secs(3600);
        let mut delivered = Delivered::default();
        feed(&mut self.pool, now, Input::Timer, &mut WithoutEvents(&mut delivered));
    }

    /// One clear for all.
    pub fn clear(&mut self) {
        let mut delivered = Delivered::default();
        let input = Input::Clear { cause: 0, interrupt: false, service: None };
        let now = self.pool.now();
        feed(&mut self.pool, now, input, &mut WithoutEvents(&mut delivered));
    }
}

/// A ready pool with `n` available connections, which became so one nanosecond after the other.
pub struct Crowd {
    pool: PoolState<Small>,
}

impl Crowd {
    /// Makes them.
    pub fn new(n: u64, max_idle: Duration) -> Self {
        let options = PoolOptions::default()
            .with_max_pool_size(0)
            .with_max_connecting(1)
            .with_max_idle_time(max_idle);
        let mut out = Vec::new();
        let mut pool = PoolState::new(Instant::ORIGIN, options, &mut out).expect("valid options");
        feed(&mut pool, Instant::ORIGIN, Input::Ready, &mut out);
        let mut held = Vec::new();
        for number in 0..n {
            out.clear();
            feed(&mut pool, Instant::ORIGIN, request(number), &mut out);
            let id = out.iter().find_map(started).expect("a connection was started");
            feed(&mut pool, Instant::ORIGIN, Input::EstablishSucceeded { id, conn: 7 }, &mut out);
            held.push(id);
        }
        for (now, id) in held.into_iter().enumerate() {
            feed(&mut pool, Instant::from_nanos(now as u64), returned(id, 7), &mut out);
        }
        Self { pool }
    }

    /// Lets the `n` oldest idle out.
    pub fn prune(&mut self, n: u64, max_idle: Duration) {
        let mut delivered = Delivered::default();
        let now = Instant::from_nanos(n) + max_idle;
        feed(&mut self.pool, now, Input::Timer, &mut WithoutEvents(&mut delivered));
    }
}

/// How large what moves is, in bytes.
pub fn sizes() -> [(&'static str, usize); 3] {
    [
        ("input", size_of::<Input<NoPayload>>()),
        ("action", size_of::<Action<NoPayload>>()),
        ("event", size_of::<cenote_core::pool::Event<()>>()),
    ]
}

fn request(id: u64) -> Input<Small> {
    Input::CheckOutRequested {
        id: WaiterId(id),
        waiter: id,
        deadline: None,
        purpose: Purpose::Other,
    }
}

fn returned(id: ConnId, conn: u64) -> Input<Small> {
    Input::CheckedIn { id, conn, health: Health::Healthy }
}

fn started(action: &Action<Small>) -> Option<ConnId> {
    if let Action::StartEstablish { id, .. } = action { Some(*id) } else { None }
}

#[inline]
fn feed(
    pool: &mut PoolState<Small>,
    now: Instant,
    input: Input<Small>,
    out: &mut impl ActionSink<Small>,
) {
    pool.handle(now, input, out).expect("a legal input");
}
