//! A key exchange that quantum computers do not break, on all runtimes.

use std::sync::Arc;

use bson::rawdoc;
use cenote_endpoint::{Endpoint, ListenOptions, Settings};
use cenote_shell::rustls::crypto::CryptoProvider;
use cenote_shell::rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use cenote_test_runtimes::{ClientSetup, Shell, TlsSetup};

#[test]
fn x25519mlkem768_is_agreed_on() {
    // The endpoint's.
    default_provider().install_default().expect("the first");
    let endpoint =
        Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("it starts");
    for shell in Shell::ALL {
        let kx_groups = vec![kx_group::X25519MLKEM768];
        let provider = Arc::new(CryptoProvider { kx_groups, ..default_provider() });
        let tls = TlsSetup { provider: Some(provider), config: None };
        let setup = ClientSetup { tls, ..ClientSetup::default() };
        let client = shell.build_client(&endpoint.uri(), setup).expect("good options");
        client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
        client.close();
    }
}
