//! The eleven messages of CMAP, word for word, and three of a draft.

/// How one message reads: its name, its first words around the address, and its fields.
pub(super) struct Template {
    /// The message of a structured record.
    pub(super) message: &'static str,
    pub(super) before_address: &'static str,
    pub(super) after_address: &'static str,
    /// A piece whose field is absent is left out.
    pub(super) pieces: &'static [Piece],
}

pub(super) enum Piece {
    /// Text, the value of the field with this key, text.
    Around(&'static str, &'static str, &'static str),
    /// One of the options that were set.
    Option(&'static str),
}

/// What comes before the first option that was set, and before the others.
pub(super) const FIRST_OPTION: &str = " using options ";
pub(super) const NEXT_OPTION: &str = ", ";

/// The keys of fields.
pub(super) mod key {
    pub(in crate::log) const SERVER_HOST: &str = "serverHost";
    pub(in crate::log) const SERVER_PORT: &str = "serverPort";
    pub(in crate::log) const DRIVER_CONNECTION_ID: &str = "driverConnectionId";
    pub(in crate::log) const DURATION_MS: &str = "durationMS";
    pub(in crate::log) const REASON: &str = "reason";
    pub(in crate::log) const ERROR: &str = "error";
    pub(in crate::log) const REQUEST_ID: &str = "requestId";
    /// Not a key of the specification.
    pub(in crate::log) const REQUEST: &str = "request";
    pub(in crate::log) const SERVICE_ID: &str = "serviceId";
    pub(in crate::log) const MAX_IDLE_TIME_MS: &str = "maxIdleTimeMS";
    pub(in crate::log) const MIN_POOL_SIZE: &str = "minPoolSize";
    pub(in crate::log) const MAX_POOL_SIZE: &str = "maxPoolSize";
    pub(in crate::log) const MAX_CONNECTING: &str = "maxConnecting";
    pub(in crate::log) const WAIT_QUEUE_TIMEOUT_MS: &str = "waitQueueTimeoutMS";
}

pub(super) static POOL_CREATED: Template = Template {
    message: "Connection pool created",
    before_address: "Connection pool created for ",
    after_address: "",
    pieces: &[
        Piece::Option(key::MAX_IDLE_TIME_MS),
        Piece::Option(key::MIN_POOL_SIZE),
        Piece::Option(key::MAX_POOL_SIZE),
        Piece::Option(key::MAX_CONNECTING),
        Piece::Option(key::WAIT_QUEUE_TIMEOUT_MS),
    ],
};

pub(super) static POOL_READY: Template = Template {
    message: "Connection pool ready",
    before_address: "Connection pool ready for ",
    after_address: "",
    pieces: &[],
};

pub(super) static POOL_CLEARED: Template = Template {
    message: "Connection pool cleared",
    before_address: "Connection pool for ",
    after_address: " cleared",
    pieces: &[Piece::Around(" for serviceId ", key::SERVICE_ID, "")],
};

pub(super) static POOL_CLOSED: Template = Template {
    message: "Connection pool closed",
    before_address: "Connection pool closed for ",
    after_address: "",
    pieces: &[],
};

pub(super) static CONNECTION_CREATED: Template = Template {
    message: "Connection created",
    before_address: "Connection created: address=",
    after_address: "",
    pieces: &[GENERATED_ID],
};

pub(super) static CONNECTION_READY: Template = Template {
    message: "Connection ready",
    before_address: "Connection ready: address=",
    after_address: "",
    pieces: &[GENERATED_ID, Piece::Around(", established in=", key::DURATION_MS, " ms")],
};

pub(super) static CONNECTION_CLOSED: Template = Template {
    message: "Connection closed",
    before_address: "Connection closed: address=",
    after_address: "",
    pieces: &[GENERATED_ID, REASON, Piece::Around(" Error: ", key::ERROR, "")],
};

pub(super) static CHECK_OUT_STARTED: Template = Template {
    message: "Connection checkout started",
    before_address: "Checkout started for connection to ",
    after_address: "",
    pieces: &[],
};

pub(super) static CHECK_OUT_FAILED: Template = Template {
    message: "Connection checkout failed",
    before_address: "Checkout failed for connection to ",
    after_address: "",
    pieces: &[
        REASON,
        Piece::Around(" Error: ", key::ERROR, "."),
        Piece::Around(" Duration: ", key::DURATION_MS, " ms"),
    ],
};

pub(super) static CHECKED_OUT: Template = Template {
    message: "Connection checked out",
    before_address: "Connection checked out: address=",
    after_address: "",
    pieces: &[GENERATED_ID, DURATION],
};

pub(super) static CHECKED_IN: Template = Template {
    message: "Connection checked in",
    before_address: "Connection checked in: address=",
    after_address: "",
    pieces: &[GENERATED_ID],
};

pub(super) static PENDING_RESPONSE_STARTED: Template = Template {
    message: "Pending response started",
    before_address: "Pending response started: address=",
    after_address: "",
    pieces: &[GENERATED_ID, REQUEST_ID],
};

pub(super) static PENDING_RESPONSE_SUCCEEDED: Template = Template {
    message: "Pending response succeeded",
    before_address: "Pending response succeeded: address=",
    after_address: "",
    pieces: &[GENERATED_ID, REQUEST_ID, DURATION],
};

pub(super) static PENDING_RESPONSE_FAILED: Template = Template {
    message: "Pending response failed",
    before_address: "Pending response failed: address=",
    after_address: "",
    pieces: &[GENERATED_ID, REQUEST_ID, Piece::Around(", reason=", key::REASON, ""), DURATION],
};

const GENERATED_ID: Piece = Piece::Around(", driver-generated ID=", key::DRIVER_CONNECTION_ID, "");
const REQUEST_ID: Piece = Piece::Around(", request ID=", key::REQUEST_ID, "");
const DURATION: Piece = Piece::Around(", duration=", key::DURATION_MS, " ms");
const REASON: Piece = Piece::Around(". Reason: ", key::REASON, ".");
