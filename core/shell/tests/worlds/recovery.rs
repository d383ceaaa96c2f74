//! After all faults ended, no task and no connection stays broken.

use std::time::Duration;

use cenote_core::pool::Status;
use cenote_tokio::Pool;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::worlds::app::{self, Answer};
use crate::worlds::connector::Simulated;
use crate::worlds::plan::Plan;

/// By when everything works: the slowest way is one socket after the other that is broken without
/// knowing it, found out by its own timeout.
const LIMIT: Duration = Duration::from_secs(15);

const PAUSE: Duration = Duration::from_millis(20);

/// As many as the pool has connections, and some more, are served; and the minimum is there.
pub(crate) async fn recover(plan: &Plan, pool: &Pool<Simulated>) -> Result<(), String> {
    let limit = Instant::now() + LIMIT + plan.late_replies();
    let mut tasks = JoinSet::new();
    for _ in 0..plan.options.max_pool_size.unwrap_or(1) + 2 {
        let pool = pool.clone();
        tasks.spawn_local(timeout_at(limit, async move {
            while !is_served(&pool).await {
                sleep(PAUSE).await;
            }
        }));
    }
    while let Some(task) = tasks.join_next().await {
        let served = task.map_err(|stopped| stopped.to_string())?;
        served.map_err(|_| format!("not served {LIMIT:?} after the last trouble: {pool:?}"))?;
    }
    let filled = timeout_at(limit, async {
        while !is_filled(pool) {
            sleep(PAUSE).await;
        }
    });
    filled.await.map_err(|_| format!("the minimum is not there: {pool:?}"))
}

async fn is_served(pool: &Pool<Simulated>) -> bool {
    match pool.check_out().await {
        Ok(mut connection) => app::ask_back(&mut connection).await == Answer::Own,
        Err(_) => false,
    }
}

fn is_filled(pool: &Pool<Simulated>) -> bool {
    let snapshot = pool.snapshot();
    snapshot.status == Status::Ready
        && snapshot.available + snapshot.in_use >= snapshot.min_pool_size
}
