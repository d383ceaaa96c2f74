//! Without the feature `ring`, TLS needs the application's choice: `.ci/features` runs this.

#![cfg(not(feature = "ring"))]

use cenote_tokio::Pool;

#[tokio::test]
async fn a_pool_with_tls_says_what_it_needs() {
    let pool = |uri| Pool::builder(uri).and_then(cenote_tokio::Builder::build);
    let error = pool("mongodb://localhost/?tls=true").expect_err("no cryptography").to_string();
    assert!(error.contains("give the builder a `crypto_provider` or a `tls_config`"), "{error}");
    pool("mongodb://localhost").expect("nothing is encrypted");
}
