//! Plays the files about `mongodb+srv://`: `initial-dns-seedlist-discovery/tests`.
//!
//! The records are those that the `README.md` of these files asks for, and the seeds of the file: for `test22` the page
//! has one server and the file two. On `core` the machine gets them as answers; on
//! the shells a real name server on the loopback has them, which a client's builder asks.
//!
//! `hosts` and `numHosts` are compared where they are the seeds, with a sharded cluster and a load balancer: the
//! members of a replica set are discovered by the driver. `ping` needs the servers of the specification's authors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use cenote_conform::{Document, Unreadable};
use cenote_core::uri::srv::{LookupError, SrvAnswers, SrvRecord, TxtRecord};
use cenote_core::uri::{ConnectionString, Secret};
use cenote_endpoint::NameServer;
use cenote_shell::client::{BuiltClient, ClientBuilder};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::outcome::Outcome;
use super::target::Target;
use super::uri::option;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    uri: String,
    seeds: Option<Vec<String>>,
    num_seeds: Option<usize>,
    hosts: Option<Vec<String>>,
    num_hosts: Option<usize>,
    #[serde(default)]
    options: Map<String, Value>,
    #[serde(default, rename = "parsed_options")]
    parsed_options: Map<String, Value>,
    #[serde(default)]
    error: bool,
    #[serde(rename = "comment")]
    _comment: Option<String>,
    #[serde(rename = "ping")]
    _ping: Option<bool>,
}

/// Records by name.
#[derive(Default)]
struct Zone {
    srv: BTreeMap<String, Vec<SrvRecord>>,
    txt: BTreeMap<String, Vec<TxtRecord>>,
}

/// Plays what was read from a file.
///
/// # Errors
///
/// When it is not of this format, or there are no records beside it.
pub(super) fn play_document(
    document: &Document,
    target: Target,
) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    let path = document.path().to_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let readme = folder.join("../README.md");
    let text = std::fs::read_to_string(&readme);
    let text =
        text.map_err(|error| document.refuse("", &format!("{}: {error}", readme.display())))?;
    let mut zone = Zone::read(&text);
    if zone.srv.is_empty() || zone.txt.is_empty() {
        return Err(document.refuse("", &format!("{}: no records", readme.display())));
    }
    zone.add_seeds(&file);
    let finds_members = folder.ends_with("replica-set");
    let resolved = file.resolve(&zone, target);
    let verdict = file.judge(resolved, finds_members).into();
    let description =
        document.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(vec![Outcome { file: path, target, description, verdict }])
}

impl File {
    fn resolve(&self, zone: &Zone, target: Target) -> Result<ConnectionString, String> {
        match target {
            Target::Core | Target::C => self.resolve_in_core(zone),
            Target::Tokio => self.resolve_by_name_server::<cenote_tokio::Client>(zone),
            Target::Mio => self.resolve_by_name_server::<cenote_mio::Client>(zone),
            Target::Smol => self.resolve_by_name_server::<cenote_smol::Client>(zone),
        }
    }

    fn resolve_in_core(&self, zone: &Zone) -> Result<ConnectionString, String> {
        let uri = ConnectionString::parse(&self.uri()).map_err(|error| error.to_string())?;
        let srv = uri.srv.as_ref().ok_or("no mongodb+srv:// connection string")?;
        let found = zone.srv.get(&srv.srv_name()).cloned().ok_or(LookupError::NotFound);
        let txt = zone.txt.get(srv.txt_name()).cloned().ok_or(LookupError::NoRecords);
        let answers = SrvAnswers { srv: found, txt };
        uri.resolve(&answers, || 1).map_err(|error| error.to_string())
    }

    fn resolve_by_name_server<C: BuiltClient>(
        &self,
        zone: &Zone,
    ) -> Result<ConnectionString, String> {
        let server = NameServer::start().map_err(|error| error.to_string())?;
        zone.srv.iter().for_each(|(name, records)| server.set_srv(name, records));
        zone.txt.iter().for_each(|(name, records)| server.set_txt(name, records));
        let builder = ClientBuilder::<C>::from_uri(&self.uri());
        let builder = builder.map_err(|error| error.to_string())?.name_servers([server.address()]);
        let resolved = smol::block_on(builder.resolve()).map_err(|error| error.to_string())?;
        Ok(resolved.connection_string().clone())
    }

    /// With a user where the file asks for `authSource`, which means nothing without one.
    fn uri(&self) -> String {
        if self.options.contains_key("authSource") && !self.uri.contains('@') {
            return self.uri.replacen("://", "://user:password@", 1);
        }
        self.uri.clone()
    }

    fn judge(
        &self,
        resolved: Result<ConnectionString, String>,
        finds_members: bool,
    ) -> Result<(), String> {
        let uri = match resolved {
            Ok(_) if self.error => return Err("expected an error, got none".to_owned()),
            Ok(uri) => uri,
            Err(_) if self.error => return Ok(()),
            Err(error) => return Err(format!("expected no error, got {error}")),
        };
        let seeds: Vec<_> = uri.hosts.iter().map(ToString::to_string).collect();
        same_set("seeds", self.seeds.as_deref(), self.num_seeds, &seeds)?;
        if !finds_members {
            same_set("hosts", self.hosts.as_deref(), self.num_hosts, &seeds)?;
        }
        for (name, expected) in &self.options {
            let seen = match &*name.to_ascii_lowercase() {
                "ssl" => Some(json!(uri.tls.enabled())),
                name => option(&uri, name),
            };
            same(name, expected, seen)?;
        }
        for (name, expected) in &self.parsed_options {
            same(name, expected, parsed(&uri, name))?;
        }
        Ok(())
    }
}

fn same(name: &str, expected: &Value, seen: Option<Value>) -> Result<(), String> {
    let seen = seen.ok_or_else(|| format!("no such option here: {name}"))?;
    if seen == *expected { Ok(()) } else { Err(format!("{name}: expected {expected}, got {seen}")) }
}

fn same_set(
    what: &str,
    expected: Option<&[String]>,
    count: Option<usize>,
    seen: &[String],
) -> Result<(), String> {
    let set = |all: &[String]| all.iter().cloned().collect::<BTreeSet<_>>();
    let is_so = expected.is_none_or(|expected| set(expected) == set(seen))
        && count.is_none_or(|count| count == seen.len());
    if is_so {
        Ok(())
    } else {
        Err(format!("{what}: expected {expected:?} ({count:?}), got {seen:?}"))
    }
}

/// A part of the connection string, as the files call it.
fn parsed(uri: &ConnectionString, name: &str) -> Option<Value> {
    let credential = uri.credential.as_ref();
    Some(match name {
        "user" => json!(credential.and_then(|it| it.username.as_ref())),
        "password" => json!(credential.and_then(|it| it.password.as_ref()).map(Secret::expose)),
        "db" | "defaultDatabase" | "auth_database" => json!(uri.database),
        _ => return None,
    })
}

impl Zone {
    /// Lines such as `_mongodb._tcp.a.example.  86400  IN SRV  27017  b.example.` and
    /// `a.example.  86400  IN TXT  "one" "two"`.
    fn read(text: &str) -> Self {
        let mut zone = Self::default();
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let name = words.first().map_or("", |name| name.strip_suffix('.').unwrap_or(name));
            match &*words {
                [_, ttl, "IN", "SRV", port, target] => {
                    let (Ok(ttl), Ok(port)) = (ttl.parse(), port.parse()) else { continue };
                    let record = SrvRecord::new(*target, port).with_ttl(Duration::from_secs(ttl));
                    zone.srv.entry(name.to_owned()).or_default().push(record);
                }
                [_, _, "IN", "TXT", ..] => {
                    // Quoted strings: every second part.
                    let strings = line.split('"').skip(1).step_by(2);
                    let strings = strings.map(|string| string.as_bytes().to_vec()).collect();
                    zone.txt.entry(name.to_owned()).or_default().push(TxtRecord { strings });
                }
                _ => {}
            }
        }
        zone
    }

    fn add_seeds(&mut self, file: &File) {
        let uri = ConnectionString::parse(&file.uri).ok();
        let Some(srv) = uri.and_then(|uri| uri.srv) else { return };
        for seed in file.seeds.iter().flatten() {
            let Some((host, Ok(port))) =
                seed.split_once(':').map(|(host, port)| (host, port.parse()))
            else {
                continue;
            };
            let records = self.srv.entry(srv.srv_name()).or_default();
            let is_it = |record: &SrvRecord| {
                record.port == port && record.target.trim_end_matches('.') == host
            };
            if !records.iter().any(is_it) {
                records.push(SrvRecord::new(host, port));
            }
        }
    }
}
