//! Why a command fails, in the terms of MongoDB's servers.

use bson::RawDocumentBuf;
use bson::raw::{RawArrayBuf, cstr};
use thiserror::Error;

/// Why a command fails: what a reply with `ok: 0` says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} ({code}): {message}", code_name(*code))]
pub struct Refusal {
    /// The number of the error.
    pub code: i32,
    /// `errmsg`.
    pub message: String,
    /// `errorLabels`; the reply has no such field when there are none.
    pub labels: Vec<String>,
}

/// The errors that this server has reason for.
pub(super) mod code {
    pub(in super::super) const BAD_VALUE: i32 = 2;
    pub(in super::super) const FAILED_TO_PARSE: i32 = 9;
    pub(in super::super) const UNAUTHORIZED: i32 = 13;
    pub(in super::super) const TYPE_MISMATCH: i32 = 14;
    pub(in super::super) const INVALID_LENGTH: i32 = 16;
    pub(in super::super) const PROTOCOL_ERROR: i32 = 17;
    pub(in super::super) const AUTHENTICATION_FAILED: i32 = 18;
    pub(in super::super) const ILLEGAL_OPERATION: i32 = 20;
    pub(in super::super) const INVALID_BSON: i32 = 22;
    pub(in super::super) const NAMESPACE_NOT_FOUND: i32 = 26;
    pub(in super::super) const INDEX_NOT_FOUND: i32 = 27;
    pub(in super::super) const CURSOR_NOT_FOUND: i32 = 43;
    pub(in super::super) const NAMESPACE_EXISTS: i32 = 48;
    pub(in super::super) const MAX_TIME_MS_EXPIRED: i32 = 50;
    pub(in super::super) const COMMAND_NOT_FOUND: i32 = 59;
    pub(in super::super) const IMMUTABLE_FIELD: i32 = 66;
    pub(in super::super) const INVALID_OPTIONS: i32 = 72;
    pub(in super::super) const INVALID_NAMESPACE: i32 = 73;
    pub(in super::super) const OPERATION_FAILED: i32 = 96;
    pub(in super::super) const METADATA_MISSING_FIELD: i32 = 183;
    pub(in super::super) const METADATA_TOO_LARGE: i32 = 184;
    pub(in super::super) const METADATA_APP_NAME_TOO_LARGE: i32 = 185;
    pub(in super::super) const METADATA_CANNOT_BE_MUTATED: i32 = 186;
    pub(in super::super) const FAIL_POINT_SET_FAILED: i32 = 209;
    pub(in super::super) const NOT_IMPLEMENTED: i32 = 238;
    pub(in super::super) const API_VERSION: i32 = 322;
    pub(in super::super) const MECHANISM_UNAVAILABLE: i32 = 334;
    pub(in super::super) const UNSUPPORTED_OP_QUERY: i32 = 352;
    pub(in super::super) const LOAD_BALANCER_MISMATCH: i32 = 354;
    pub(in super::super) const REAUTHENTICATION_REQUIRED: i32 = 391;
    pub(in super::super) const NOT_WRITABLE_PRIMARY: i32 = 10107;
    pub(in super::super) const OBJECT_TOO_LARGE: i32 = 10334;
    pub(in super::super) const DUPLICATE_KEY: i32 = 11000;
    pub(in super::super) const NOT_PRIMARY_NO_SECONDARY_OK: i32 = 13435;
    pub(in super::super) const NOT_PRIMARY_OR_SECONDARY: i32 = 13436;
    pub(in super::super) const OUT_OF_DISK_SPACE: i32 = 14031;
    pub(in super::super) const VERSION_WITHOUT_WAIT: i32 = 31368;
    pub(in super::super) const NEGATIVE_COUNTER: i32 = 31372;
    pub(in super::super) const NEGATIVE_WAIT: i32 = 31373;
    pub(in super::super) const COUNTER_AHEAD: i32 = 31382;
    pub(in super::super) const MISSING_DATABASE: i32 = 40571;
}

/// The names of codes, those that fail points are often told to give included.
const NAMES: [(i32, &str); 62] = [
    (1, "InternalError"),
    (2, "BadValue"),
    (6, "HostUnreachable"),
    (7, "HostNotFound"),
    (8, "UnknownError"),
    (9, "FailedToParse"),
    (11, "UserNotFound"),
    (13, "Unauthorized"),
    (14, "TypeMismatch"),
    (16, "InvalidLength"),
    (17, "ProtocolError"),
    (18, "AuthenticationFailed"),
    (20, "IllegalOperation"),
    (22, "InvalidBSON"),
    (26, "NamespaceNotFound"),
    (27, "IndexNotFound"),
    (43, "CursorNotFound"),
    (48, "NamespaceExists"),
    (50, "MaxTimeMSExpired"),
    (59, "CommandNotFound"),
    (63, "StaleShardVersion"),
    (64, "WriteConcernFailed"),
    (66, "ImmutableField"),
    (72, "InvalidOptions"),
    (73, "InvalidNamespace"),
    (79, "UnknownReplWriteConcern"),
    (89, "NetworkTimeout"),
    (91, "ShutdownInProgress"),
    (96, "OperationFailed"),
    (100, "UnsatisfiableWriteConcern"),
    (112, "WriteConflict"),
    (121, "DocumentValidationFailure"),
    (133, "FailedToSatisfyReadPreference"),
    (134, "ReadConcernMajorityNotAvailableYet"),
    (150, "StaleEpoch"),
    (183, "ClientMetadataMissingField"),
    (184, "ClientMetadataDocumentTooLarge"),
    (185, "ClientMetadataAppNameTooLarge"),
    (186, "ClientMetadataCannotBeMutated"),
    (189, "PrimarySteppedDown"),
    (209, "FailPointSetFailed"),
    (234, "RetryChangeStream"),
    (238, "NotImplemented"),
    (251, "NoSuchTransaction"),
    (262, "ExceededTimeLimit"),
    (322, "APIVersionError"),
    (334, "MechanismUnavailable"),
    (352, "UnsupportedOpQueryCommand"),
    (354, "LoadBalancerSupportMismatch"),
    (358, "InternalTransactionNotSupported"),
    (391, "ReauthenticationRequired"),
    (462, "IngressRequestRateLimitExceeded"),
    (9001, "SocketException"),
    (10058, "LegacyNotPrimary"),
    (10107, "NotWritablePrimary"),
    (10334, "BSONObjectTooLarge"),
    (11000, "DuplicateKey"),
    (11600, "InterruptedAtShutdown"),
    (11602, "InterruptedDueToReplStateChange"),
    (13435, "NotPrimaryNoSecondaryOk"),
    (13436, "NotPrimaryOrSecondary"),
    (14031, "OutOfDiskSpace"),
];

/// The name of a code: `Location` and the number where a server has no better one.
pub(super) fn code_name(code: i32) -> String {
    match NAMES.binary_search_by_key(&code, |(code, _)| *code) {
        Ok(at) => NAMES[at].1.to_owned(),
        Err(_) => format!("Location{code}"),
    }
}

impl Refusal {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), labels: Vec::new() }
    }

    /// What a real server could do.
    pub(super) fn cannot(what: &str) -> Self {
        Self::new(code::NOT_IMPLEMENTED, format!("this server cannot do {what}"))
    }

    /// The error that a command gets from the fail point `failCommand` with this `errorCode`.
    #[must_use]
    pub fn by_fail_point(code: i32) -> Self {
        let message = match code {
            code::MAX_TIME_MS_EXPIRED => "operation exceeded time limit",
            _ => "Failing command via 'failCommand' failpoint",
        };
        Self::new(code, message)
    }

    /// Whether it says that the server is not, or no longer, the primary: a member of a replica set
    /// then tells how much it knows of its state. One that shuts down does so only while it still
    /// waits for its successor, which this one never does.
    pub(super) fn is_not_primary(&self) -> bool {
        const NOT_PRIMARY: [i32; 6] = [189, 10058, 10107, 11602, 13435, 13436];
        NOT_PRIMARY.contains(&self.code)
    }

    /// Whether a write that failed so may be tried again.
    pub(super) fn is_retryable_write(&self) -> bool {
        const SHUTDOWN: [i32; 2] = [91, 11600];
        const NETWORK: [i32; 6] = [6, 7, 89, 134, 262, 9001];
        self.is_not_primary() || SHUTDOWN.contains(&self.code) || NETWORK.contains(&self.code)
    }

    /// Whether a transaction that failed so may be tried again as a whole.
    pub(super) fn is_transient(&self) -> bool {
        const TRANSIENT: [i32; 5] = [24, 112, 246, 251, 267];
        TRANSIENT.contains(&self.code)
    }

    /// The error as a reply, without the fields that depend on the topology.
    #[must_use]
    pub fn reply(&self) -> RawDocumentBuf {
        let mut reply = RawDocumentBuf::new();
        if !self.labels.is_empty() {
            let labels: RawArrayBuf = self.labels.iter().map(String::as_str).collect();
            reply.append(cstr!("errorLabels"), labels);
        }
        reply.append(cstr!("ok"), 0.0);
        reply.append(cstr!("errmsg"), self.message.as_str());
        reply.append(cstr!("code"), self.code);
        reply.append(cstr!("codeName"), code_name(self.code).as_str());
        reply
    }
}

/// A document with a key or a text that is not UTF-8: the rest of it was checked when it came.
impl From<bson::error::Error> for Refusal {
    fn from(error: bson::error::Error) -> Self {
        Self::new(code::INVALID_BSON, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, code_name};

    #[test]
    fn names_are_in_order_so_that_they_are_found() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(code_name(11000), "DuplicateKey");
        assert_eq!(code_name(50985), "Location50985");
    }
}
