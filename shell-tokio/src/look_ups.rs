use std::io;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Looks names up on tokio's threads for work that blocks, and leaves most of these to the application: a look-up without
/// an answer keeps its thread, also after its caller has gone.
#[derive(Clone, Debug)]
pub(crate) struct LookUps(Arc<Semaphore>);

impl LookUps {
    /// How many names are looked up at the same time at most, of the 512 threads that tokio has by default.
    const MAX: usize = 128;

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        ask: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
        let work = move || {
            let answer = ask();
            drop(place);
            answer
        };
        spawn_blocking(work).await.map_err(io::Error::other)?
    }
}

impl Default for LookUps {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(Self::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};

    use tokio::runtime;
    use tokio::task::{JoinSet, spawn_blocking, yield_now};

    use super::LookUps;

    #[test]
    fn names_that_do_not_resolve_leave_threads_to_the_application() {
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.max_blocking_threads(LookUps::MAX + 1).build().expect("a runtime");
        let (answer, answers) = channel::<()>();
        let answers = Arc::new(Mutex::new(answers));
        runtime.block_on(async {
            let look_ups = LookUps::default();
            let mut unanswered = JoinSet::new();
            for _ in 0..2 * LookUps::MAX {
                let (look_ups, answers) = (look_ups.clone(), Arc::clone(&answers));
                unanswered.spawn(async move {
                    let ask = move || Ok(answers.lock().expect("no panic").recv().is_ok());
                    look_ups.run(ask).await.expect("an answer")
                });
            }
            while look_ups.0.available_permits() > 0 {
                yield_now().await;
            }
            spawn_blocking(|| ()).await.expect("a thread");
            drop(answer);
            assert!(unanswered.join_all().await.iter().all(|answered| !answered));
        });
    }
}
