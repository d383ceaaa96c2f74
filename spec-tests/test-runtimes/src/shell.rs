use std::sync::Arc;

use cenote_shell::builder::BuildError;
use cenote_shell::client::{Client, ClientBuildError};
use cenote_smol::Smol;
use cenote_tokio::Tokio;

use crate::pool::PoolOf;
use crate::runtime::AsyncRuntime;
use crate::{AnyClient, AnyPool, ClientSetup, PoolSetup, PoolUri};

/// A runtime with its pools and clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `cenote-tokio`.
    Tokio,
    /// `cenote-mio`, whose calls block by themselves.
    Mio,
    /// `cenote-smol`.
    Smol,
}

impl Shell {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tokio, Self::Mio, Self::Smol];

    /// A pool, which is paused.
    ///
    /// # Errors
    ///
    /// Those of [`Builder`](cenote_shell::builder::Builder).
    pub fn build_pool<'a>(
        self,
        uri: impl Into<PoolUri<'a>>,
        setup: PoolSetup,
    ) -> Result<Arc<dyn AnyPool>, BuildError> {
        let uri = uri.into();
        match self {
            Self::Tokio => pool::<Tokio>(uri, setup),
            Self::Mio => Ok(Arc::new(setup.builder::<_, cenote_mio::Pool>(uri)?.build()?)),
            Self::Smol => pool::<Smol>(uri, setup),
        }
    }

    /// A client.
    ///
    /// # Errors
    ///
    /// Those of [`ClientBuilder`](cenote_shell::client::ClientBuilder).
    pub fn build_client(
        self,
        uri: &str,
        setup: ClientSetup<'_>,
    ) -> Result<Box<dyn AnyClient>, ClientBuildError> {
        match self {
            Self::Tokio => client::<Tokio>(uri, setup),
            // It looks names up by itself.
            Self::Mio => Ok(Box::new(setup.builder::<cenote_mio::Client>(uri)?.build()?)),
            Self::Smol => client::<Smol>(uri, setup),
        }
    }
}

fn pool<R: AsyncRuntime>(
    uri: PoolUri<'_>,
    setup: PoolSetup,
) -> Result<Arc<dyn AnyPool>, BuildError> {
    R::block_on(async { Ok(Arc::new(setup.builder::<R, PoolOf<R>>(uri)?.build()?) as Arc<_>) })
}

fn client<R: AsyncRuntime>(
    uri: &str,
    setup: ClientSetup<'_>,
) -> Result<Box<dyn AnyClient>, ClientBuildError> {
    R::block_on(async {
        let builder = setup.builder::<Client<R>>(uri)?.resolve().await?;
        Ok(Box::new(builder.build()?) as Box<_>)
    })
}

/// Makes a test of each of these functions, which take a [`Shell`], on each runtime.
#[macro_export]
macro_rules! on_all_runtimes {
    ($($test:ident),* $(,)?) => {
        $crate::on_runtime!(on_tokio, Tokio, $($test),*);
        $crate::on_runtime!(on_mio, Mio, $($test),*);
        $crate::on_runtime!(on_smol, Smol, $($test),*);
    };
}

/// Makes a module of tests on one runtime.
#[macro_export]
macro_rules! on_runtime {
    ($module:ident, $runtime:ident, $($test:ident),*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test($crate::Shell::$runtime);
            })*
        }
    };
}
