//! Options that contradict each other: no target makes a pool of them (OP-03, OP-04, OP-06).

use cenote_core::pool::{Instant, PoolState, PoolTypes};
use cenote_core::uri::ConnectionString;

use super::expected::Expected;
use super::format::File;
use crate::conform::Target;

/// Nothing is pooled here.
struct Nothing;

impl PoolTypes for Nothing {
    type Conn = ();
    type Waiter = ();
    type Cause = ();
}

/// Has the target refuse the options of a file.
///
/// # Errors
///
/// That it takes them, or refuses them for another reason.
pub(super) fn play(file: &File, target: Target) -> Result<(), String> {
    let expected = file.invalid_options.as_deref().unwrap_or_default();
    let options = file.pool_options.unchecked()?;
    let uri = ConnectionString::parse(&format!("mongodb://{}", Expected::ADDRESS));
    let uri = uri.map_err(|error| error.to_string())?;
    let address = || Expected::ADDRESS.parse().map_err(|_| "no address".to_owned());
    let refusal = match target {
        Target::Core => {
            let pool = PoolState::<Nothing>::new(Instant::ORIGIN, options, &mut Vec::new());
            pool.err().map(|error| error.to_string())
        }
        Target::Tokio => {
            let connector =
                cenote_tokio::MongoConnector::new(&uri).map_err(|error| error.to_string())?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            let _inside = runtime.enter();
            let builder = cenote_tokio::Builder::new(address()?, connector).options(options);
            builder.build().err().map(|error| error.to_string())
        }
        Target::Mio => {
            let connector =
                cenote_mio::MongoConnector::new(&uri).map_err(|error| error.to_string())?;
            let builder = cenote_mio::Builder::new(address()?, connector).options(options);
            builder.build().err().map(|error| error.to_string())
        }
    };
    match refusal {
        Some(reason) if reason.contains(expected) => Ok(()),
        Some(reason) => Err(format!("expected to be refused with {expected:?}, saw {reason:?}")),
        None => Err(format!("expected to be refused with {expected:?}, saw a pool")),
    }
}
