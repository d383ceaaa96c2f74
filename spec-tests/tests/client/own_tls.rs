//! TLS as the application chooses it: a configuration or a provider of cryptography of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::rawdoc;
use cenote_endpoint::{Endpoint, ListenOptions, NameServer, Settings, Topology};
use cenote_shell::client::ClientBuildError;
use cenote_test_runtimes::{PoolSetup, TlsSetup, alone};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, GetRandomFailed, SecureRandom, ring};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::shells::{AnyClient, ClientSetup, NameService, Shell, on_all_runtimes};
use crate::srv::{HOST, SRV, record};
use crate::world::World;

on_all_runtimes!(
    its_verifier_accepts_and_refuses,
    its_provider_is_used,
    servers_of_srv_records_have_the_same_tls,
    what_contradicts_its_configuration_is_named,
);

/// Judges all certificates alike, and counts them.
#[derive(Debug)]
struct Judge {
    accepts: bool,
    asked: AtomicUsize,
    provider: CryptoProvider,
}

impl Judge {
    fn new(accepts: bool) -> Arc<Self> {
        Arc::new(Self { accepts, asked: AtomicUsize::new(0), provider: ring::default_provider() })
    }

    fn config(self: &Arc<Self>) -> Arc<ClientConfig> {
        let config = ClientConfig::builder_with_provider(Arc::new(self.provider.clone()))
            .with_safe_default_protocol_versions()
            .expect("ring has both");
        let verifier = Arc::clone(self);
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        Arc::new(config.with_no_client_auth())
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let refused = || CertificateError::Revoked.into();
        self.accepts.then(ServerCertVerified::assertion).ok_or_else(refused)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The randomness of a provider, which counts how often it is used.
#[derive(Debug, Default)]
struct Counted(AtomicUsize);

impl Counted {
    fn provider() -> (&'static Self, CryptoProvider) {
        let counted: &'static Self = Box::leak(Box::default());
        (counted, CryptoProvider { secure_random: counted, ..ring::default_provider() })
    }

    fn uses(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl SecureRandom for Counted {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.0.fetch_add(1, Ordering::Relaxed);
        ring::default_provider().secure_random.fill(buffer)
    }
}

fn encrypted(topology: Topology) -> Endpoint {
    let settings = Settings { topology, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts")
}

fn ping(client: &dyn AnyClient) {
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    client.close();
}

/// It comes before a provider, and the connection string says nothing about TLS.
fn its_verifier_accepts_and_refuses(shell: Shell) {
    let endpoint = encrypted(Topology::Standalone);
    let uri = format!("mongodb://{}", endpoint.address());
    for accepts in [true, false] {
        let (judge, (counted, provider)) = (Judge::new(accepts), Counted::provider());
        let tls = TlsSetup { provider: Some(Arc::new(provider)), config: Some(judge.config()) };
        let setup = PoolSetup { tls, ..PoolSetup::default() };
        let pool = shell.build_pool(&uri, setup).expect("good options");
        pool.ready();
        match pool.check_out() {
            Ok(_) => assert!(accepts),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    !accepts && text.contains("the server's certificate was revoked"),
                    "{text}"
                );
            }
        }
        assert_eq!((judge.asked.load(Ordering::Relaxed), counted.uses()), (1, 0));
    }
    let judge = Judge::new(true);
    let tls = TlsSetup { provider: None, config: Some(judge.config()) };
    let setup = ClientSetup { tls, ..ClientSetup::default() };
    ping(&*shell.build_client(&uri, setup).expect("good options"));
    assert!(judge.asked.load(Ordering::Relaxed) > 0);
}

fn its_provider_is_used(shell: Shell) {
    let endpoint = encrypted(Topology::Standalone);
    let (counted, provider) = Counted::provider();
    let tls = TlsSetup { provider: Some(Arc::new(provider)), config: None };
    let setup = PoolSetup { tls: tls.clone(), ..PoolSetup::default() };
    let pool = shell.build_pool(&endpoint.uri(), setup).expect("good options");
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    let by_pool = counted.uses();
    assert!(by_pool > 0);
    let setup = ClientSetup { tls, ..ClientSetup::default() };
    ping(&*shell.build_client(&endpoint.uri(), setup).expect("good options"));
    assert!(counted.uses() > by_pool);
}

// SV-01
fn servers_of_srv_records_have_the_same_tls(shell: Shell) {
    let endpoint = encrypted(Topology::Mongos);
    let names = NameServer::start().expect("a port");
    names.set_srv(SRV, &[record(&endpoint)]);
    let client = |uri: &str, tls| {
        let names = NameService::new(names.address(), World::SRV_INTERVAL);
        let setup = ClientSetup { names: Some(names), tls, ..ClientSetup::default() };
        shell.build_client(uri, setup).expect("good options")
    };
    let judge = Judge::new(true);
    let uri = format!("mongodb+srv://{HOST}/");
    ping(&*client(&uri, TlsSetup { config: Some(judge.config()), provider: None }));
    assert!(judge.asked.load(Ordering::Relaxed) > 0);
    let (counted, provider) = Counted::provider();
    let uri = format!("{uri}?tlsInsecure=true");
    ping(&*client(&uri, TlsSetup { config: None, provider: Some(Arc::new(provider)) }));
    assert!(counted.uses() > 0);
}

fn what_contradicts_its_configuration_is_named(shell: Shell) {
    for (name, rest) in [
        ("tls=false", ""),
        ("tlsCAFile", "=ca.pem"),
        ("tlsCertificateKeyFile", "=client.pem"),
        ("tlsCertificateKeyFilePassword", "=secret"),
        ("tlsInsecure", "=false"),
        ("tlsAllowInvalidCertificates", "=true"),
        ("tlsAllowInvalidHostnames", "=true"),
    ] {
        let tls = TlsSetup { config: Some(Judge::new(true).config()), provider: None };
        let uri = format!("mongodb://localhost/?{name}{rest}");
        let setup = ClientSetup { tls: tls.clone(), ..ClientSetup::default() };
        let of_client = shell.build_client(&uri, setup).map(drop).expect_err(name);
        let setup = PoolSetup { tls, ..PoolSetup::default() };
        let of_pool = shell.build_pool(&uri, setup).map(drop).expect_err(name);
        for error in [of_client, ClientBuildError::from(of_pool)] {
            let text = error.to_string();
            assert!(text.contains(&format!("{name} contradicts `tls_config`")), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

#[test]
fn the_default_of_the_process_comes_before_the_built_in_one() {
    alone(|| {
        // Before there is one, which it would use as well.
        let endpoint = encrypted(Topology::Standalone);
        let (counted, provider) = Counted::provider();
        provider.install_default().expect("the first");
        for shell in Shell::ALL {
            let before = counted.uses();
            let client = shell.build_client(&endpoint.uri(), ClientSetup::default());
            ping(&*client.expect("good options"));
            assert!(counted.uses() > before, "{shell:?}");
        }
    });
}
