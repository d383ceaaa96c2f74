//! What a run takes of the operating system, and whether that has grown.

use std::fmt;
use std::time::{Duration, Instant};
use std::{fs, io};

use serde::Serialize;
use tokio::time::sleep;

/// What this process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Resources {
    /// File descriptors: sockets to anywhere, files, polls.
    descriptors: usize,
    threads: usize,
}

/// Before the first thing was begun and after the last one was ended; and how much memory there was
/// while the work went on.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Growth {
    before: Resources,
    after: Resources,
    /// Once everything had run in; `None` if the work was over before.
    memory_warm_bytes: Option<u64>,
    /// When the work ended.
    memory_bytes: u64,
}

/// How much more memory there may be at the end of the work than when everything had run in. That is
/// not nothing: 65,536 events may wait to be judged at one time and none at another (some 16 MiB), TLS
/// has larger buffers the busier it is, each thread may have got an arena of the allocator, which gives
/// little back. A quarter more than it was covers all that grows with tasks and connections. What leaks
/// grows with time, and a long run has that: a hundred bytes of each of five thousand operations a second
/// are through in three minutes.
const ALLOWANCE: u64 = 32 << 20;

impl Resources {
    /// As of now; `None` where the operating system does not tell.
    pub(super) fn now() -> io::Result<Option<Self>> {
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let descriptors = fs::read_dir("/proc/self/fd")?.count();
        let threads = fs::read_dir("/proc/self/task")?.count();
        Ok(Some(Self { descriptors, threads }))
    }

    /// As of when it has become no more than it was, or patience has an end: threads and descriptors are
    /// told to end, and take a moment for it.
    async fn settle(before: Self, patience: Duration) -> io::Result<Option<Self>> {
        let began = Instant::now();
        loop {
            let now = Self::now()?;
            let has_settled = now.is_none_or(|now| !now.exceeds(before));
            if has_settled || began.elapsed() > patience {
                return Ok(now);
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    const fn exceeds(self, before: Self) -> bool {
        self.descriptors > before.descriptors || self.threads > before.threads
    }
}

/// How much memory the process has, as far as it is not swapped out.
pub(super) fn memory() -> io::Result<Option<u64>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kibibytes.map(|kibibytes| kibibytes * 1024))
}

/// What is remembered while the work goes on.
#[derive(Debug)]
pub(super) struct Meter {
    before: Option<Resources>,
    warm: Option<u64>,
}

impl Meter {
    /// Nothing has been begun.
    pub(super) fn begin() -> io::Result<Self> {
        Ok(Self { before: Resources::now()?, warm: None })
    }

    /// Looks once everything has run in: after a quarter of the work.
    pub(super) fn look(&mut self, part_done: f64) -> io::Result<()> {
        if self.warm.is_none() && part_done >= 0.25 {
            self.warm = memory()?;
        }
        Ok(())
    }

    /// Everything has been ended; `memory` is from when the work was.
    pub(super) async fn end(
        self,
        memory: Option<u64>,
        patience: Duration,
    ) -> io::Result<Option<Growth>> {
        let (Some(before), Some(memory_bytes)) = (self.before, memory) else { return Ok(None) };
        let after = Resources::settle(before, patience).await?;
        let growth = |after| Growth { before, after, memory_warm_bytes: self.warm, memory_bytes };
        Ok(after.map(growth))
    }
}

impl Growth {
    /// What has grown.
    pub(super) fn complaints(&self) -> Vec<String> {
        let Self { before, after, memory_bytes: memory, .. } = self;
        let warm = self.memory_warm_bytes.unwrap_or(u64::MAX);
        let bound = warm.saturating_add(warm / 4).saturating_add(ALLOWANCE);
        let checks = [
            (
                after.descriptors <= before.descriptors,
                format!("{} descriptors became {}", before.descriptors, after.descriptors),
            ),
            (
                after.threads <= before.threads,
                format!("{} threads became {}", before.threads, after.threads),
            ),
            (*memory <= bound, format!("{} of memory became {}", mebi(warm), mebi(*memory))),
        ];
        checks.into_iter().filter_map(|(holds, what)| (!holds).then_some(what)).collect()
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after, memory_bytes, .. } = self;
        write!(f, "{} descriptors before and {} after", before.descriptors, after.descriptors)?;
        write!(f, ", {} and {} threads", before.threads, after.threads)?;
        match self.memory_warm_bytes {
            Some(warm) => write!(f, "; memory {}, in the end {}", mebi(warm), mebi(*memory_bytes)),
            None => write!(f, "; memory in the end {}", mebi(*memory_bytes)),
        }
    }
}

/// Bytes, as people read them.
fn mebi(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn growth(after: (usize, usize), memory: (Option<u64>, u64)) -> Growth {
        let resources = |(descriptors, threads)| Resources { descriptors, threads };
        let (warm, end) = memory;
        Growth {
            before: resources((2, 4)),
            after: resources(after),
            memory_warm_bytes: warm.map(|it| it * MIB),
            memory_bytes: end * MIB,
        }
    }

    #[test]
    fn whatever_grew_is_told() {
        for (after, memory, complaints) in [
            ((2, 4), (Some(100), 100), &[][..]),
            ((1, 3), (Some(100), 20), &[]),
            ((2, 4), (Some(100), 157), &[]),
            ((2, 4), (None, 9_000), &[]),
            ((3, 4), (Some(100), 100), &["2 descriptors became 3"]),
            ((2, 9), (Some(100), 100), &["4 threads became 9"]),
            ((2, 4), (Some(100), 158), &["100 MiB of memory became 158 MiB"]),
            ((3, 5), (None, 1), &["2 descriptors became 3", "4 threads became 5"]),
        ] {
            assert_eq!(growth(after, memory).complaints(), complaints);
        }
    }
}
