//! Clients on real sockets, against endpoints. Each test runs on tokio, mio and smol.

mod aws;
mod bad_input;
mod certificate_files;
mod churn;
mod closing;
mod contract;
mod credentials;
mod crowd;
mod discovery;
#[cfg(unix)]
mod inspection;
mod load_balanced;
mod load_balanced_trouble;
mod logging;
mod metadata;
mod new_credentials;
mod oidc;
mod own_mechanism;
mod own_tls;
mod partition;
mod paused;
mod prose;
mod prose_sdam;
mod prose_selection;
mod prose_srv;
mod recording;
mod release_idle;
mod replica_set;
#[cfg(all(feature = "loads", target_os = "linux"))]
mod restless;
mod sdam_rules;
#[cfg(unix)]
mod secrets;
mod shells;
#[cfg(target_os = "linux")]
mod shortage;
mod srv;
mod srv_hosts;
mod storm;
mod subscribers;
#[cfg(target_os = "linux")]
mod threads;
mod timeouts;
mod topology_events;
mod trouble;
mod world;
