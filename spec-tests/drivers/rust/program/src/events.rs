//! The driver's pool events, as lines that `cenote check` reads.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::event::EventHandler;
use mongodb::event::cmap::{
    CmapEvent, ConnectionCheckoutFailedReason, ConnectionClosedReason, ConnectionPoolOptions,
};
use serde_json::{Value, json};

use super::Result;

/// A file that events are written to.
pub(crate) struct Events(Arc<Mutex<BufWriter<File>>>);

impl Events {
    pub(crate) fn to_file(path: &str) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(BufWriter::new(File::create(path)?)))))
    }

    pub(crate) fn handler(&self) -> EventHandler<CmapEvent> {
        let file = self.0.clone();
        EventHandler::callback(move |event| {
            let mut file = file.lock().expect("no panic meanwhile");
            writeln!(file, "{}", line(&event)).expect("the disk has room");
        })
    }

    pub(crate) fn finish(&self) -> Result<()> {
        Ok(self.0.lock().expect("no panic meanwhile").flush()?)
    }
}

fn line(event: &CmapEvent) -> Value {
    let mut line = match event {
        CmapEvent::PoolCreated(it) => {
            json!({ "type": "ConnectionPoolCreated", "options": options(it.options.as_ref()) })
        }
        CmapEvent::PoolReady(_) => json!({ "type": "ConnectionPoolReady" }),
        CmapEvent::PoolCleared(it) => {
            let interrupt = it.interrupt_in_use_connections;
            json!({ "type": "ConnectionPoolCleared", "interruptInUseConnections": interrupt })
        }
        CmapEvent::PoolClosed(_) => json!({ "type": "ConnectionPoolClosed" }),
        CmapEvent::ConnectionCreated(it) => of("ConnectionCreated", it.connection_id),
        CmapEvent::ConnectionReady(it) => {
            with(of("ConnectionReady", it.connection_id), "durationMS", ms(it.duration))
        }
        CmapEvent::ConnectionClosed(it) => {
            with(of("ConnectionClosed", it.connection_id), "reason", closed(&it.reason))
        }
        CmapEvent::ConnectionCheckoutStarted(_) => json!({ "type": "ConnectionCheckOutStarted" }),
        CmapEvent::ConnectionCheckoutFailed(it) => {
            let reason = match it.reason {
                ConnectionCheckoutFailedReason::Timeout => "timeout",
                _ => "connectionError",
            };
            let duration = ms(it.duration);
            json!({ "type": "ConnectionCheckOutFailed", "reason": reason, "durationMS": duration })
        }
        CmapEvent::ConnectionCheckedOut(it) => {
            with(of("ConnectionCheckedOut", it.connection_id), "durationMS", ms(it.duration))
        }
        CmapEvent::ConnectionCheckedIn(it) => of("ConnectionCheckedIn", it.connection_id),
        other => panic!("an event that CMAP does not have: {other:?}"),
    };
    // There is one pool.
    line["address"] = json!("server");
    line
}

fn of(name: &str, id: u32) -> Value {
    json!({ "type": name, "connectionId": id })
}

fn with(mut line: Value, key: &str, value: Value) -> Value {
    line[key] = value;
    line
}

fn ms(duration: Duration) -> Value {
    json!(duration.as_secs_f64() * 1e3)
}

fn options(options: Option<&ConnectionPoolOptions>) -> Value {
    let max = options.and_then(|options| options.max_pool_size);
    json!({ "maxPoolSize": max, "minPoolSize": options.and_then(|options| options.min_pool_size) })
}

/// CMAP has no reason for the driver's "dropped"; its connections have an unread reply.
fn closed(reason: &ConnectionClosedReason) -> Value {
    json!(match reason {
        ConnectionClosedReason::Stale => "stale",
        ConnectionClosedReason::Idle => "idle",
        ConnectionClosedReason::PoolClosed => "poolClosed",
        _ => "error",
    })
}
