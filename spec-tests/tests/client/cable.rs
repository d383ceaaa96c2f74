//! A cable to an endpoint, which can be cut: what is on its way then arrives when it is whole again,
//! and nobody is told anything.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use cenote::endpoint::Endpoint;
use cenote_core::address::ServerAddress;

pub(crate) struct Cable {
    address: ServerAddress,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_cut: Mutex<bool>,
    mended: Condvar,
}

impl Cable {
    /// Its threads end with the connections, and with the process.
    pub(crate) fn to(endpoint: &Endpoint) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let to = endpoint.address().to_string().parse().expect("an address in numbers");
        let state = Arc::new(State::default());
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let state = Arc::clone(&of_thread);
                thread::spawn(move || state.connect(near, to));
            }
        });
        Self { address: address.parse().expect("an address"), state }
    }

    pub(crate) fn address(&self) -> ServerAddress {
        self.address.clone()
    }

    pub(crate) fn cut(&self) {
        *self.state.is_cut.lock().expect("no panic") = true;
    }

    pub(crate) fn mend(&self) {
        *self.state.is_cut.lock().expect("no panic") = false;
        self.state.mended.notify_all();
    }
}

impl State {
    fn connect(self: Arc<Self>, near: TcpStream, to: SocketAddr) {
        self.wait_until_whole();
        let Ok(far) = TcpStream::connect(to) else { return };
        let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { return };
        let back = Arc::clone(&self);
        thread::spawn(move || back.carry(far_too, near_too));
        self.carry(near, far);
    }

    /// Bytes, and the end.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 4096];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            self.wait_until_whole();
            if count == 0 || to.write_all(&buffer[..count]).is_err() {
                // The other direction ends, too.
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                return;
            }
        }
    }

    fn wait_until_whole(&self) {
        let is_cut = self.is_cut.lock().expect("no panic");
        drop(self.mended.wait_while(is_cut, |is_cut| *is_cut).expect("no panic"));
    }
}
