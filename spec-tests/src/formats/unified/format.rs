//! What a file of the unified test format may say here. Whatever is not named is refused, so that
//! nothing in a file is passed over in silence.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::driver;
use crate::formats::read_preference::Preference;
use cenote_conform::document::nested::{self, read_variant};
use cenote_conform::{Version, parse_version};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "description")]
    _description: String,
    #[serde(rename = "schemaVersion")]
    _schema_version: SchemaVersion,
    /// Where the tests can be played.
    #[serde(default)]
    pub(super) run_on_requirements: Vec<Requirement>,
    /// What is there before each test.
    #[serde(default)]
    pub(super) create_entities: Vec<Definition>,
    #[serde(default)]
    pub(super) initial_data: Vec<Data>,
    pub(super) tests: Vec<Test>,
    /// Not of the official format: the rules that the tests are about (docs/audit/scenarios.md).
    #[serde(default, rename = "requirements")]
    _requirements: Vec<String>,
    #[serde(default, rename = "_yamlAnchors")]
    _yaml_anchors: Value,
}

/// One of major version 1.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct SchemaVersion;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct ServerVersion(Version);

/// Where a test can be played. The endpoint has what these files need of any version that clients accept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Requirement {
    #[serde(default, rename = "minServerVersion")]
    _min_server_version: Option<ServerVersion>,
    max_server_version: Option<ServerVersion>,
    pub(super) topologies: Option<Vec<Topology>>,
    /// Whether users have to authenticate, which they have to here.
    pub(super) auth: Option<bool>,
    /// A mechanism that the server has to know: it knows all that clients here do.
    pub(super) auth_mechanism: Option<String>,
    pub(super) serverless: Option<Serverless>,
}

impl Requirement {
    /// Whether the server has to be older than all that clients accept.
    pub(super) fn is_too_old(&self) -> bool {
        self.max_server_version.is_some_and(|ServerVersion(newest)| newest < [4, 4, 0])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Topology {
    Single,
    #[serde(rename = "replicaset")]
    ReplicaSet,
    Sharded,
    #[serde(rename = "sharded-replicaset")]
    ShardedReplicaSet,
    LoadBalanced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Serverless {
    Require,
    Forbid,
    Allow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Test {
    pub(super) description: String,
    #[serde(default)]
    pub(super) run_on_requirements: Vec<Requirement>,
    pub(super) skip_reason: Option<String>,
    pub(super) operations: Vec<Operation>,
    #[serde(default)]
    pub(super) expect_events: Vec<ExpectEvents>,
    #[serde(default)]
    pub(super) expect_log_messages: Vec<ExpectLogMessages>,
    /// What is in the collections in the end.
    #[serde(default)]
    pub(super) outcome: Vec<Data>,
}

impl Test {
    /// Whether it looks at the servers of a deployment, and not at one of them alone.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are about one server")]
    pub(super) fn looks_at_topology(&self) -> bool {
        self.operations.iter().any(|operation| match &operation.action {
            Action::RecordTopologyDescription { .. } => true,
            Action::WaitForEvent { event, .. } => event.name == "topologyDescriptionChangedEvent",
            _ => false,
        })
    }
}

/// The documents of a collection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) database_name: String,
    pub(super) collection_name: String,
    pub(super) documents: Vec<Map<String, Value>>,
}

/// Something that operations name.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Definition {
    Client(ClientDefinition),
    Database(DatabaseDefinition),
    Collection(CollectionDefinition),
    Bucket(BucketDefinition),
    Session(SessionDefinition),
    Thread(ThreadDefinition),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ClientDefinition {
    pub(super) id: String,
    #[serde(default)]
    pub(super) uri_options: BTreeMap<String, Value>,
    /// Whether there are several servers behind the load balancer.
    pub(super) use_multiple_mongoses: Option<bool>,
    #[serde(default)]
    pub(super) observe_events: Vec<String>,
    /// Commands whose events are not observed.
    #[serde(default)]
    pub(super) ignore_command_monitoring_events: Vec<String>,
    /// How long `minPoolSize` connections may take, which the test waits for.
    #[serde(rename = "awaitMinPoolSizeMS")]
    pub(super) await_min_pool_size_ms: Option<u64>,
    /// The severity by component.
    #[serde(default)]
    pub(super) observe_log_messages: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DatabaseDefinition {
    pub(super) id: String,
    pub(super) client: String,
    pub(super) database_name: String,
    #[serde(default)]
    pub(super) database_options: DatabaseOptions,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatabaseOptions {
    #[serde(rename = "timeoutMS")]
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CollectionDefinition {
    pub(super) id: String,
    pub(super) database: String,
    pub(super) collection_name: String,
    #[serde(default)]
    pub(super) collection_options: CollectionOptions,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CollectionOptions {
    pub(super) read_preference: Option<Preference>,
    #[serde(rename = "timeoutMS")]
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SessionDefinition {
    pub(super) id: String,
    pub(super) client: String,
    #[serde(default)]
    pub(super) session_options: SessionOptions,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SessionOptions {
    #[serde(default)]
    pub(super) default_transaction_options: TransactionOptions,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TransactionOptions {
    #[serde(rename = "maxCommitTimeMS")]
    pub(super) max_commit_time_ms: Option<i64>,
}

/// A GridFS bucket, which has a name, and no operation that is played.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BucketDefinition {
    pub(super) id: String,
    #[serde(rename = "database")]
    _database: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ThreadDefinition {
    pub(super) id: String,
}

/// What the test runner itself is called.
pub(super) const RUNNER: &str = "testRunner";

/// One operation, on what, and what has to become of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct Operation {
    pub(super) object: String,
    pub(super) action: Action,
    pub(super) limits: Limits,
    pub(super) expect_error: Option<ExpectError>,
    pub(super) expect_result: Option<Value>,
    pub(super) save_as: Option<String>,
    /// Whatever becomes of it is right.
    pub(super) ignore_result_and_error: bool,
}

/// How long an operation may take, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// `timeoutMS`; zero is without limit.
    pub(super) timeout: Option<u64>,
    /// `maxTimeMS`, which a driver sends where no timeout applies.
    pub(super) max_time: Option<i64>,
    /// When an operation of several commands has to end.
    pub(super) deadline: Option<Instant>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectError {
    pub(super) is_error: Option<bool>,
    pub(super) is_client_error: Option<bool>,
    pub(super) is_timeout_error: Option<bool>,
    pub(super) error_contains: Option<String>,
    pub(super) error_code: Option<i64>,
    #[serde(default)]
    pub(super) error_labels_contain: Vec<String>,
    #[serde(default)]
    pub(super) error_labels_omit: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectEvents {
    pub(super) client: String,
    #[serde(default)]
    pub(super) event_type: Family,
    pub(super) events: Vec<ExpectedEvent>,
    #[serde(default)]
    pub(super) ignore_extra_events: bool,
}

/// The three families of events, which are compared by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Family {
    #[default]
    Command,
    Cmap,
    Sdam,
}

/// The name of an event, and what has to be in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct ExpectedEvent {
    pub(super) name: String,
    pub(super) fields: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectLogMessages {
    pub(super) client: String,
    pub(super) messages: Vec<ExpectLogMessage>,
    /// Messages that do not count.
    #[serde(default)]
    pub(super) ignore_messages: Vec<ExpectLogMessage>,
    /// Whether there may be more after the last one.
    #[serde(default)]
    pub(super) ignore_extra_messages: bool,
}

/// The components whose messages can be observed.
pub(super) const COMPONENTS: [&str; 3] = ["connection", "topology", "serverSelection"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectLogMessage {
    pub(super) level: String,
    pub(super) component: String,
    pub(super) data: Map<String, Value>,
}

impl TryFrom<String> for ServerVersion {
    type Error = String;

    fn try_from(version: String) -> Result<Self, String> {
        let parsed = parse_version(&version).map(Self);
        parsed.ok_or_else(|| format!("`{version}` is not the version of a server"))
    }
}

impl TryFrom<String> for SchemaVersion {
    type Error = String;

    fn try_from(version: String) -> Result<Self, String> {
        match version.strip_prefix("1.").map(str::parse::<u32>) {
            Some(Ok(_)) => Ok(Self),
            Some(Err(_)) | None => {
                Err(format!("schema version {version} is unknown, 1.x is known"))
            }
        }
    }
}

impl TryFrom<Map<String, Value>> for Operation {
    type Error = String;

    // A flattened struct could not refuse unknown keys.
    fn try_from(mut map: Map<String, Value>) -> Result<Self, String> {
        let object = take(&mut map, "object")?.ok_or("missing field `object`")?;
        let save_as = take(&mut map, "saveResultAsEntity")?;
        let ignore_result_and_error = take(&mut map, "ignoreResultAndError")?.unwrap_or_default();
        let expect_error = take(&mut map, "expectError")?;
        let expect_result = map.remove("expectResult");
        let name: String = take(&mut map, "name")?.ok_or("missing field `name`")?;
        let mut arguments = map.remove("arguments");
        let limits =
            if object == RUNNER { Limits::default() } else { Limits::take(&mut arguments)? };
        let action = if driver::OPERATIONS.contains(&&*name) {
            Action::OfDriver { name }
        } else {
            read_action(&name, arguments)?
        };
        if let Some(key) = map.keys().next() {
            return Err(format!("unknown field `{key}`"));
        }
        Ok(Self {
            object,
            action,
            limits,
            expect_error,
            expect_result,
            save_as,
            ignore_result_and_error,
        })
    }
}

/// Some operations have no arguments, or need none of those that they may have.
fn read_action(name: &str, arguments: Option<Value>) -> Result<Action, String> {
    let read = |arguments| read_variant(name, "arguments", arguments);
    let Some(arguments) = arguments else {
        let without = read(None);
        return without.or_else(|what| read(Some(Value::Object(Map::new()))).map_err(|_| what));
    };
    read(Some(arguments))
}

impl Limits {
    /// With the timeout of the collection or the database, unless the operation has one.
    pub(super) fn or_timeout(self, timeout: Option<u64>) -> Self {
        Self { timeout: self.timeout.or(timeout), ..self }
    }

    /// Takes them from the arguments of any operation.
    fn take(arguments: &mut Option<Value>) -> Result<Self, String> {
        let Some(Value::Object(map)) = arguments else { return Ok(Self::default()) };
        let (timeout, max_time) = (take(map, "timeoutMS")?, take(map, "maxTimeMS")?);
        let limits = Self { timeout, max_time, deadline: None };
        if map.is_empty() {
            *arguments = None;
        }
        Ok(limits)
    }
}

/// What is there under a key, if anything is.
fn take<T: DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Result<Option<T>, String> {
    map.remove(key).map(|value| nested::read(key, &value)).transpose()
}

impl TryFrom<Map<String, Value>> for ExpectedEvent {
    type Error = String;

    fn try_from(map: Map<String, Value>) -> Result<Self, String> {
        let mut entries = map.into_iter();
        match (entries.next(), entries.next()) {
            (Some((name, Value::Object(fields))), None) => {
                super::expect::check_event(&name, &fields)?;
                Ok(Self { name, fields })
            }
            _ => Err("an event is its name and an object".to_owned()),
        }
    }
}

/// An operation and its arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Action {
    // The runner's.
    FailPoint {
        client: String,
        fail_point: Map<String, Value>,
    },
    CreateEntities {
        entities: Vec<Definition>,
    },
    RunOnThread {
        thread: String,
        operation: Box<Operation>,
    },
    WaitForThread {
        thread: String,
    },
    WaitForEvent {
        client: String,
        event: ExpectedEvent,
        count: usize,
    },
    AssertEventCount {
        client: String,
        event: ExpectedEvent,
        count: usize,
    },
    AssertNumberConnectionsCheckedOut {
        client: String,
        connections: usize,
    },
    AssertSameLsidOnLastTwoCommands {
        client: String,
    },
    Wait {
        ms: u64,
    },
    RecordTopologyDescription {
        client: String,
        id: String,
    },
    AssertTopologyType {
        topology_description: String,
        topology_type: String,
    },
    WaitForPrimaryChange {
        client: String,
        prior_topology_description: String,
        #[serde(rename = "timeoutMS")]
        timeout_ms: u64,
    },
    // Of clients, cursors and sessions.
    Close,
    AppendMetadata {
        driver_info_options: DriverInfoOptions,
    },
    IterateUntilDocumentOrError,
    StartTransaction,
    CommitTransaction,
    AbortTransaction,
    EndSession,
    // Commands.
    RunCommand {
        command: Map<String, Value>,
        command_name: String,
        read_preference: Option<Preference>,
    },
    BulkWrite {
        requests: Vec<WriteRequest>,
    },
    ClientBulkWrite {
        models: Vec<WriteModel>,
    },
    ListDatabases {
        filter: Map<String, Value>,
    },
    ListDatabaseNames,
    ListCollections {
        filter: Map<String, Value>,
        batch_size: Option<i32>,
    },
    ListCollectionNames {
        filter: Map<String, Value>,
    },
    ListIndexes {
        batch_size: Option<i32>,
    },
    ListIndexNames,
    CreateIndex {
        keys: Map<String, Value>,
        name: String,
    },
    DropIndex {
        name: String,
    },
    DropIndexes,
    Find(Find),
    FindOne {
        filter: Map<String, Value>,
    },
    CreateFindCursor(Find),
    Aggregate {
        pipeline: Vec<Value>,
        batch_size: Option<i32>,
    },
    Count {
        filter: Map<String, Value>,
    },
    CountDocuments {
        filter: Map<String, Value>,
        session: Option<String>,
    },
    EstimatedDocumentCount,
    Distinct {
        field_name: String,
        filter: Map<String, Value>,
    },
    InsertOne {
        document: Map<String, Value>,
        session: Option<String>,
    },
    InsertMany {
        documents: Vec<Map<String, Value>>,
    },
    UpdateOne {
        filter: Map<String, Value>,
        update: Map<String, Value>,
    },
    UpdateMany {
        filter: Map<String, Value>,
        update: Map<String, Value>,
    },
    ReplaceOne {
        filter: Map<String, Value>,
        replacement: Map<String, Value>,
    },
    DeleteOne {
        filter: Map<String, Value>,
    },
    DeleteMany {
        filter: Map<String, Value>,
    },
    FindOneAndDelete {
        filter: Map<String, Value>,
    },
    FindOneAndReplace {
        filter: Map<String, Value>,
        replacement: Map<String, Value>,
    },
    FindOneAndUpdate {
        filter: Map<String, Value>,
        update: Map<String, Value>,
    },
    /// One of [`driver::OPERATIONS`], whose arguments are not read: its test is not played.
    #[serde(skip)]
    OfDriver {
        name: String,
    },
}

/// One write of several in a collection.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum WriteRequest {
    InsertOne { document: Map<String, Value> },
    ReplaceOne { filter: Map<String, Value>, replacement: Map<String, Value> },
}

/// One write of several in any collections.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum WriteModel {
    InsertOne { namespace: String, document: Map<String, Value> },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Find {
    pub(super) filter: Map<String, Value>,
    pub(super) sort: Option<Map<String, Value>>,
    pub(super) batch_size: Option<i32>,
    pub(super) session: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DriverInfoOptions {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) platform: Option<String>,
}
