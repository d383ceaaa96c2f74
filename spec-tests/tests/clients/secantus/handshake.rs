//! Hello, as this server answers it.

use bson::{Document, rawdoc};
use cenote_core::connect::ServerKind;

use crate::secantus::open;
use crate::secantus::server::Server;

#[test]
fn hello_describes_the_server() {
    let server = Server::plain();
    let mut connection = open(&server.uri("appname=described")).unwrap();
    let description = connection.description();
    assert_eq!(description.kind, ServerKind::RsPrimary);
    assert_eq!(description.set_name.as_deref(), Some("secantus"));
    assert_eq!(description.session_timeout_minutes, Some(30));
    assert_eq!(description.limits.max_message_size, 48_000_000);
    assert!(description.max_wire_version >= 25);
    assert!(description.topology_version.is_some());
    assert!(description.connection_id.is_some());
    assert_eq!((description.service_id, description.mechanism), (None, None));

    // HS-20: the server knows us by the name that we gave.
    let operations = connection.command(
        "admin",
        &rawdoc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }], "cursor": {} },
    );
    let text = Document::try_from(operations.unwrap()).unwrap().to_string();
    assert!(text.contains("described") && text.contains("cenote"), "{text}");
}

// CM-06: this server compresses nothing, which is no error.
#[test]
fn without_a_common_compressor_nothing_is_compressed() {
    let server = Server::plain();
    let mut connection = open(&server.uri("compressors=zstd,snappy,zlib")).unwrap();
    assert_eq!(connection.description().compressor, None);
    connection.command("admin", &rawdoc! { "ping": 1 }).unwrap();
}
