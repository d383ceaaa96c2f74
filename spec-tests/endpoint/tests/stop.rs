//! What an endpoint leaves behind, counted by the operating system: nothing.

use std::fs;
use std::net::TcpStream;
use std::thread;

use cenote_endpoint::{Endpoint, ListenAddress, ListenOptions, Settings};
use cenote_test_runtimes::alone;

/// Threads and open files of this process.
fn count() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"]
        .map(|folder| fs::read_dir(folder).expect("Linux tells").count())
}

#[test]
fn threads_and_sockets_are_gone() {
    alone(|| {
        // What is made once for all, such as the pipe that wakes for signals, is made by the first one.
        let start = || Endpoint::start(Settings::default(), ListenOptions::with_tls()).unwrap();
        start().stop();
        let before = count();
        for _ in 0..5 {
            let endpoint = start();
            let ListenAddress::Tcp { port } = *endpoint.place() else { panic!("TCP by default") };
            let streams: Vec<_> =
                (0..50).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
            assert!(count()[0] > before[0]);
            endpoint.stop();
            drop(streams);
            // A thread that has been joined may be listed for a moment longer.
            let settled = (0..100_000).any(|_| {
                thread::yield_now();
                count() == before
            });
            assert!(settled, "{:?} are left of {before:?}", count());
        }
    });
}
