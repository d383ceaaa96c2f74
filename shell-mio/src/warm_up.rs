use std::panic::Location;

use cenote_core::error::PoolError;
use cenote_core::pool::Purpose;
use cenote_shell::warm_up::{is_in_vain, to_ask};

use crate::connector::Connector;
use crate::guard::PooledConnection;
use crate::pool::Pool;
use crate::request::{Request, take_over};

impl<K: Connector> Pool<K> {
    /// Makes connections now, until so many are idle at once or the pool is full (`maxPoolSize`),
    /// and says how many it had together in the end. Those that are idle already count, those that
    /// others use do not. Blocks until that is so.
    ///
    /// For a service that wants its connections before its first request, and wants to hear when
    /// there is no server. `minPoolSize` is the other way: it is kept up for as long as the pool
    /// lives, in the background, and tells nobody about failures. The two go together; what was
    /// warmed up beyond the minimum may idle out again.
    ///
    /// It checks connections out, `maxConnecting` at a time, and checks them all in at the end. Until
    /// then they are not there for others, so that its place is before the traffic and not in it:
    /// others are in the same queue. The pool has to be [`ready`](Self::ready). The limit for each of
    /// its requests is `waitQueueTimeoutMS`, as for everybody's.
    ///
    /// # Errors
    ///
    /// The first failure, as [`check_out`](Self::check_out) has it. Connections that were made before
    /// that stay in the pool.
    #[track_caller]
    pub fn warm_up(&self, connections: u32) -> Result<u32, PoolError> {
        let place = Location::caller();
        let mut held = Vec::new();
        loop {
            let batch = to_ask(&self.snapshot(), connections.saturating_sub(count(&held)), 0);
            if batch == 0 {
                return Ok(count(&held));
            }
            // All of them before any is waited for, so that they are made side by side.
            let asked: Vec<_> = (0..batch).map(|_| self.ask(place)).collect();
            let deadline = self.shared().end_of_wait();
            for answer in asked {
                let connection = match answer {
                    Ok(connection) => connection,
                    Err(request) => {
                        let is_in_vain = || is_in_vain(&self.snapshot());
                        let Some(delivery) = request.wait_in_turn(deadline, is_in_vain) else {
                            return Ok(count(&held));
                        };
                        take_over(self.shared(), delivery, place)
                    }
                };
                held.push(connection?);
            }
        }
    }

    /// A connection, or why there is none, if that is known at once.
    fn ask(
        &self,
        place: &'static Location<'static>,
    ) -> Result<Result<PooledConnection<K>, PoolError>, Request<'_, K>> {
        let answer = Request::new(self.shared(), Purpose::Other, None);
        answer.map(|delivery| take_over(self.shared(), delivery, place))
    }
}

fn count<T>(held: &[T]) -> u32 {
    u32::try_from(held.len()).unwrap_or(u32::MAX)
}
