//! Sockets as the operating system counts them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use std::{fs, io};

use cenote_core::address::ServerAddress;
use tokio::time::sleep;

/// How many sockets of this process are connected to these servers, once there are none or patience has
/// an end: connections that were being opened are given up when their task comes to its turn.
/// `None` where the operating system does not tell.
pub async fn settle<'a>(
    servers: impl IntoIterator<Item = &'a ServerAddress>,
    patience: Duration,
) -> io::Result<Option<usize>> {
    let ports: Option<BTreeSet<_>> = servers.into_iter().map(ServerAddress::port).collect();
    let Some(ports) = ports.filter(|_| cfg!(target_os = "linux")) else { return Ok(None) };
    let began = Instant::now();
    loop {
        let count = connected_to(&ports)?;
        if count == 0 || began.elapsed() > patience {
            return Ok(Some(count));
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Sockets that this process has open, and whose other end is one of these ports.
fn connected_to(ports: &BTreeSet<u16>) -> io::Result<usize> {
    let mut own = BTreeSet::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        // It may be closed meanwhile.
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let target = target.to_string_lossy().into_owned();
        own.extend(
            target.strip_prefix("socket:[").and_then(|it| Some(it.strip_suffix(']')?.to_owned())),
        );
    }
    let mut table = fs::read_to_string("/proc/net/tcp")?;
    // Not there where IPv6 is switched off.
    table.extend(fs::read_to_string("/proc/net/tcp6"));
    let is_ours = |line: &&str| {
        // sl local_address rem_address st queues timer retransmit uid timeout inode …
        let columns: Vec<_> = line.split_whitespace().collect();
        let remote = columns.get(2).and_then(|address| address.split_once(':'));
        let remote = remote.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        remote.is_some_and(|port| ports.contains(&port))
            && columns.get(9).is_some_and(|inode| own.contains(*inode))
    };
    Ok(table.lines().filter(is_ours).count())
}
