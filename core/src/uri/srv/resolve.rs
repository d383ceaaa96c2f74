//! From answers to a connection string with hosts.

use super::{LookupError, SrvAnswers, SrvError, SrvOptions, SrvRecord, TxtRecord};
use crate::address::ServerAddress;
use crate::uri::{
    ConnectionString, UriError, UriWarning, check_topology, credential,
    query::{Pair, Query},
};

impl ConnectionString {
    /// The connection string with its servers and with the options of the TXT record, from the answers of a name
    /// server. `random` gives random numbers, for `srvMaxHosts`. One that is not `mongodb+srv://` stays as it is.
    ///
    /// # Errors
    ///
    /// There are no servers, an answer breaks a rule of the [module](crate::uri::srv), or the options of both together
    /// exclude each other.
    pub fn resolve(
        mut self,
        answers: &SrvAnswers,
        random: impl FnMut() -> u64,
    ) -> Result<Self, SrvError> {
        let Some(srv) = self.srv.clone() else { return Ok(self) };
        let mut hosts = srv.hosts(&answers.srv)?;
        if let Some(text) = srv.txt(&answers.txt)? {
            self.apply(&srv, &text)?;
        }
        choose(&mut hosts, srv.limit(), random);
        self.hosts = hosts;
        let checked = check_topology(&self.topology, self.hosts.len(), Some(&srv));
        checked.map_err(|error| srv.refused(error))?;
        Ok(self)
    }

    /// Sets what the TXT record sets and the connection string does not.
    // SV-06
    fn apply(&mut self, srv: &SrvOptions, text: &str) -> Result<(), SrvError> {
        let malformed = |error| SrvError::TxtMalformed { host: srv.host().to_owned(), error };
        let mut query = Query::of_text(text).map_err(malformed)?;
        let source = query.take("authSource");
        let replica_set = query.text("replicaSet");
        let load_balanced = query.boolean("loadBalanced");
        if let Some(option) = query.unread() {
            return Err(SrvError::TxtOption {
                host: srv.host().to_owned(),
                option: option.to_owned(),
            });
        }
        if source.as_ref().is_some_and(|source| source.text().is_empty()) {
            return Err(malformed(UriError::AuthSourceEmpty));
        }
        let source = source.as_ref().filter(|_| !srv.has_auth_source).map(Pair::text);
        if let (Some(source), Some(credential)) = (source, &mut self.credential) {
            let chosen = credential::with_source(credential, source);
            chosen.map_err(|error| srv.refused(error))?;
        }
        let topology = &mut self.topology;
        topology.replica_set = topology.replica_set.take().or(replica_set);
        topology.load_balanced = topology.load_balanced.or(load_balanced);
        self.pool.load_balanced = topology.load_balanced;
        self.warnings.extend(query.finish().into_iter().map(UriWarning::of_txt));
        Ok(())
    }
}

impl SrvOptions {
    /// The most records of an answer that is accepted: each costs a pool and a monitor.
    pub const RECORDS_MAX: usize = 1_000;

    /// The servers, each once, in the order of the records.
    fn hosts(
        &self,
        records: &Result<Vec<SrvRecord>, LookupError>,
    ) -> Result<Vec<ServerAddress>, SrvError> {
        let hosts = self.records(records)?.iter().map(|record| self.server(record));
        Ok(distinct(hosts.collect::<Result<_, _>>()?))
    }

    /// The records, of which there is one at least, and no more than a cluster can have.
    // SV-04
    pub(crate) fn records<'a>(
        &self,
        records: &'a Result<Vec<SrvRecord>, LookupError>,
    ) -> Result<&'a [SrvRecord], SrvError> {
        let error = match records {
            Ok(records) if records.len() > Self::RECORDS_MAX => {
                let (host, records) = (self.host().to_owned(), records.len());
                return Err(SrvError::TooManyRecords { host, records });
            }
            Ok(records) if !records.is_empty() => return Ok(records),
            Ok(_) => LookupError::NoRecords,
            Err(error) => error.clone(),
        };
        Err(SrvError::Srv { host: self.host().to_owned(), name: self.srv_name(), error })
    }

    /// The server that a record names.
    ///
    /// # Errors
    ///
    /// It is outside of the [domain](Self::domain), or no server.
    // SV-03
    pub fn server(&self, record: &SrvRecord) -> Result<ServerAddress, SrvError> {
        let (host, target) = (self.host().to_owned(), record.target.clone());
        let name = target.strip_suffix('.').unwrap_or(&target);
        match ServerAddress::tcp(name, record.port) {
            Ok(server) if self.covers(&server) => Ok(server),
            Ok(_) => {
                Err(SrvError::OutsideDomain { host, target, domain: self.domain().to_owned() })
            }
            Err(error) => Err(SrvError::NotAServer { host, target, port: record.port, error }),
        }
    }

    /// The text of the TXT record, if there is one.
    // SV-05
    fn txt(
        &self,
        records: &Result<Vec<TxtRecord>, LookupError>,
    ) -> Result<Option<String>, SrvError> {
        let host = || self.host().to_owned();
        let record = match records {
            Ok(records) => match &**records {
                [] => return Ok(None),
                [record] => record,
                several => {
                    return Err(SrvError::SeveralTxt { host: host(), records: several.len() });
                }
            },
            Err(LookupError::NotFound | LookupError::NoRecords) => return Ok(None),
            Err(error) => return Err(SrvError::Txt { host: host(), error: error.clone() }),
        };
        let text = String::from_utf8(record.strings.concat());
        text.map(Some).map_err(|_| SrvError::TxtEncoding { host: host() })
    }

    fn refused(&self, error: UriError) -> SrvError {
        SrvError::Options { host: self.host().to_owned(), error }
    }
}

/// Each server once: names are in lower case already.
pub(crate) fn distinct(mut servers: Vec<ServerAddress>) -> Vec<ServerAddress> {
    let mut known = std::collections::BTreeSet::new();
    servers.retain(|server| known.insert(server.clone()));
    servers
}

/// Leaves a random choice of that many, by the shuffle of Fisher and Yates. All of them stay in their order.
// SV-07
pub(crate) fn choose(
    servers: &mut Vec<ServerAddress>,
    count: usize,
    mut random: impl FnMut() -> u64,
) {
    if count >= servers.len() {
        return;
    }
    for place in 0..count {
        let left = servers.len() - place;
        let offset = random() % u64::try_from(left).unwrap_or(u64::MAX);
        servers.swap(place, place + usize::try_from(offset).unwrap_or(0));
    }
    servers.truncate(count);
}
