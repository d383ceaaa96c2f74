//! Clients of all runtimes, whose calls block.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use bson::RawDocument;
use cenote_core::client::{ClientError, Selector};
use cenote_core::pool::Purpose;
use cenote_shell::client::{BuiltClient, Client, ClientBuilder};
use cenote_shell::connection::Connection;
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_smol::Smol;
use cenote_tokio::Tokio;

/// Makes a client for a connection string.
pub(crate) type Make = fn(&str) -> Box<dyn AnyClient>;

pub(crate) const ON_ALL_RUNTIMES: [Make; 3] = [
    |uri| Tokio::block_on(async { make::<Client<Tokio>>(uri) }),
    make::<cenote_mio::Client>,
    |uri| Smol::block_on(async { make::<Client<Smol>>(uri) }),
];

fn make<C: BuiltClient + AnyClient + 'static>(uri: &str) -> Box<dyn AnyClient> {
    let builder = ClientBuilder::<C>::from_uri(uri).expect("a connection string");
    Box::new(builder.build().expect("good options"))
}

type Outcome = Result<(), ClientError>;

pub(crate) trait AnyClient {
    fn command(&self, command: &RawDocument, options: OperationOptions) -> Outcome;
    fn check_out(&self, selector: &Selector, options: OperationOptions) -> Outcome;
    fn with_connection(&self, selector: &Selector) -> Outcome;
    fn pin(&self, selector: &Selector) -> Outcome;
    /// Waits for a secondary, and gives up after this time, long before its limit. `false` where no call can be given up.
    fn give_up_after(&self, time: Duration) -> bool;
    fn close(&self);
}

trait AsyncRuntime: CurrentRuntime + Network<Connection = Connection<Self>> {
    fn block_on<T>(work: impl Future<Output = T>) -> T;
}

impl AsyncRuntime for Tokio {
    fn block_on<T>(work: impl Future<Output = T>) -> T {
        static RUNTIME: LazyLock<tokio::runtime::Runtime> =
            LazyLock::new(|| tokio::runtime::Runtime::new().expect("a runtime"));
        RUNTIME.block_on(work)
    }
}

impl AsyncRuntime for Smol {
    fn block_on<T>(work: impl Future<Output = T>) -> T {
        smol::block_on(work)
    }
}

impl<R: AsyncRuntime> AnyClient for Client<R> {
    fn command(&self, command: &RawDocument, options: OperationOptions) -> Outcome {
        R::block_on(self.command_with("admin", command, options)).map(drop)
    }

    fn check_out(&self, selector: &Selector, options: OperationOptions) -> Outcome {
        R::block_on(self.check_out_with(selector, options)).map(drop)
    }

    fn with_connection(&self, selector: &Selector) -> Outcome {
        R::block_on(self.with_connection(selector, async |_| Ok(())))
    }

    fn pin(&self, selector: &Selector) -> Outcome {
        R::block_on(self.pin(selector, Purpose::Cursor)).map(drop)
    }

    fn give_up_after(&self, time: Duration) -> bool {
        let waiting = async { drop(self.check_out(&Selector::Secondary).await) };
        let timer = async {
            smol::Timer::after(time).await;
        };
        R::block_on(smol::future::or(waiting, timer));
        true
    }

    fn close(&self) {
        R::block_on(self.close());
    }
}

impl AnyClient for cenote_mio::Client {
    fn command(&self, command: &RawDocument, options: OperationOptions) -> Outcome {
        self.command_with("admin", command, options).map(drop)
    }

    fn check_out(&self, selector: &Selector, options: OperationOptions) -> Outcome {
        self.check_out_with(selector, options).map(drop)
    }

    fn with_connection(&self, selector: &Selector) -> Outcome {
        self.with_connection(selector, |_| Ok(()))
    }

    fn pin(&self, selector: &Selector) -> Outcome {
        self.pin(selector, Purpose::Cursor).map(drop)
    }

    fn give_up_after(&self, _: Duration) -> bool {
        false
    }

    fn close(&self) {
        self.close();
    }
}
