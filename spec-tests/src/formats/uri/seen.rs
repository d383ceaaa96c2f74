//! What was parsed, written as the official files write it.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use cenote_core::{
    address::ServerAddress,
    uri::{
        Compressor, ConnectionString, Credential, Mechanism, ReadPreferenceMode, Secret,
        ServerMonitoringMode, WriteConcern, srv::SrvOptions,
    },
};
use serde_json::{Map, Value, json};

/// The hosts. The files write the default port as `null` where the text has none, so that a port
/// is `null` here where the file's is and the default is meant.
pub(super) fn hosts(parsed: &ConnectionString, expected: &[Value]) -> Value {
    let of = |(position, address): (usize, &ServerAddress)| {
        let unsaid = expected.get(position).is_some_and(|host| host["port"].is_null());
        let port = address.port().filter(|port| !unsaid || *port != ServerAddress::DEFAULT_PORT);
        json!({ "type": kind(address), "host": address.host(), "port": port })
    };
    parsed.hosts.iter().enumerate().map(of).collect()
}

fn kind(address: &ServerAddress) -> &'static str {
    match address {
        ServerAddress::Unix { .. } => "unix",
        ServerAddress::Tcp { host, .. } if host.parse::<Ipv6Addr>().is_ok() => "ip_literal",
        ServerAddress::Tcp { host, .. } if host.parse::<Ipv4Addr>().is_ok() => "ipv4",
        ServerAddress::Tcp { .. } | _ => "hostname",
    }
}

/// User, password and database.
pub(super) fn auth(parsed: &ConnectionString) -> Value {
    let credential = parsed.credential.as_ref();
    json!({
        "username": credential.and_then(|it| it.username.clone()),
        "password": credential.and_then(|it| it.password.as_ref()).map(Secret::expose),
        "db": parsed.database,
    })
}

/// The whole credential, or `null`.
pub(super) fn credential(parsed: &ConnectionString) -> Value {
    let Some(credential) = &parsed.credential else { return Value::Null };
    json!({
        "username": credential.username,
        "password": credential.password.as_ref().map(Secret::expose),
        "source": credential.source,
        "mechanism": credential.mechanism.map(Mechanism::name),
        "mechanism_properties": properties(credential),
    })
}

fn properties(credential: &Credential) -> Value {
    if credential.mechanism_properties.is_empty() {
        return Value::Null;
    }
    let of = |(name, value): (&&str, &Secret)| ((*name).to_owned(), json!(value.expose()));
    Value::Object(credential.mechanism_properties.iter().map(of).collect::<Map<_, _>>())
}

/// One option by its name in lower case: `null` if it is not set, `None` if no option has this
/// name.
pub(in crate::formats) fn option(parsed: &ConnectionString, name: &str) -> Option<Value> {
    authentication(parsed, name)
        .or_else(|| pool_and_timeouts(parsed, name))
        .or_else(|| topology(parsed, name))
        .or_else(|| tls_and_compression(parsed, name))
        .or_else(|| reads_and_writes(parsed, name))
}

fn authentication(parsed: &ConnectionString, name: &str) -> Option<Value> {
    let credential = parsed.credential.as_ref();
    Some(match name {
        "authmechanism" => json!(credential.and_then(|it| it.mechanism).map(Mechanism::name)),
        "authmechanismproperties" => credential.map_or(Value::Null, properties),
        "authsource" => json!(credential.map(|it| it.source.as_str())),
        _ => return None,
    })
}

fn pool_and_timeouts(parsed: &ConnectionString, name: &str) -> Option<Value> {
    let (pool, timeouts) = (&parsed.pool, &parsed.timeouts);
    Some(match name {
        "maxpoolsize" => json!(pool.max_pool_size),
        "minpoolsize" => json!(pool.min_pool_size),
        "maxidletimems" => millis(pool.max_idle_time),
        "maxconnecting" => json!(pool.max_connecting),
        "waitqueuetimeoutms" => millis(pool.wait_queue_timeout),
        "connecttimeoutms" => millis(timeouts.connect),
        "sockettimeoutms" => millis(timeouts.socket),
        "timeoutms" => millis(timeouts.operation),
        _ => return None,
    })
}

fn topology(parsed: &ConnectionString, name: &str) -> Option<Value> {
    let (topology, monitoring) = (&parsed.topology, &parsed.monitoring);
    let mode = monitoring.server_monitoring_mode;
    Some(match name {
        "appname" => json!(parsed.app_name),
        "replicaset" => json!(topology.replica_set),
        "directconnection" => json!(topology.direct_connection),
        "loadbalanced" => json!(topology.load_balanced),
        "serverselectiontimeoutms" => millis(topology.server_selection_timeout),
        "serverselectiontryonce" => json!(topology.server_selection_try_once),
        "localthresholdms" => millis(topology.local_threshold),
        "srvservicename" => json!(parsed.srv.as_ref().map(SrvOptions::service_name)),
        "srvmaxhosts" => json!(parsed.srv.as_ref().and_then(SrvOptions::max_hosts)),
        "heartbeatfrequencyms" => millis(monitoring.heartbeat_frequency),
        "servermonitoringmode" => json!(mode.map(ServerMonitoringMode::name)),
        _ => return None,
    })
}

fn tls_and_compression(parsed: &ConnectionString, name: &str) -> Option<Value> {
    let (tls, compression) = (&parsed.tls, &parsed.compression);
    let password = tls.certificate_key_file_password.as_ref();
    let compressors = compression.compressors.as_ref();
    let names = |all: &Vec<Compressor>| all.iter().map(|one| one.name()).collect::<Vec<_>>();
    Some(match name {
        "tls" => json!(tls.tls),
        "tlscafile" => json!(tls.ca_file),
        "tlscertificatekeyfile" => json!(tls.certificate_key_file),
        "tlscertificatekeyfilepassword" => json!(password.map(Secret::expose)),
        "tlsallowinvalidcertificates" => json!(tls.allow_invalid_certificates),
        "tlsallowinvalidhostnames" => json!(tls.allow_invalid_hostnames),
        "tlsinsecure" => json!(tls.insecure),
        "tlsdisableocspendpointcheck" => json!(tls.disable_ocsp_endpoint_check),
        "tlsdisablecertificaterevocationcheck" => {
            json!(tls.disable_certificate_revocation_check)
        }
        "compressors" => json!(compressors.map(names)),
        "zlibcompressionlevel" => json!(compression.zlib_compression_level),
        _ => return None,
    })
}

fn reads_and_writes(parsed: &ConnectionString, name: &str) -> Option<Value> {
    let (options, retries) = (&parsed.read_write, &parsed.retries);
    let write_concern = options.write_concern.as_ref().map(|concern| match concern {
        WriteConcern::Members(count) => json!(count),
        WriteConcern::Named(name) => json!(name),
        other => json!(format!("{other:?}")),
    });
    Some(match name {
        "readconcernlevel" => json!(options.read_concern_level),
        "w" => json!(write_concern),
        "wtimeoutms" => millis(options.write_timeout),
        "journal" => json!(options.journal),
        "readpreference" => json!(options.read_preference.map(ReadPreferenceMode::name)),
        "readpreferencetags" => json!(options.read_preference_tags),
        "maxstalenessseconds" => json!(options.max_staleness.map(|limit| limit.as_secs())),
        "retryreads" => json!(retries.retry_reads),
        "retrywrites" => json!(retries.retry_writes),
        "maxadaptiveretries" => json!(retries.max_adaptive_retries),
        "enableoverloadretargeting" => json!(retries.enable_overload_retargeting),
        _ => return None,
    })
}

fn millis(duration: Option<Duration>) -> Value {
    json!(duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
}
