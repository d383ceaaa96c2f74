// Numbers and structures of libcenote in WebAssembly: cenote.h explains them. Written by make_abi.py.

export const ActionKind = Object.freeze({
  NONE: 0,
  START_ESTABLISH: 1,
  ABORT_ESTABLISH: 2,
  DELIVER: 3,
  CLOSE_SOCKET: 4,
  INTERRUPT: 5,
  REPORT_LEAK: 6,
  EMIT_EVENT: 7,
  START_DRAIN: 8,
  ABORT_DRAIN: 9,
  REPORT_UNANSWERED: 10,
});

export const CauseKind = Object.freeze({
  NETWORK: 0,
  TIMEOUT: 1,
  NOT_SENT: 2,
  COMMAND: 3,
  PROTOCOL: 4,
  CONFIGURATION: 5,
  LOCAL: 6,
});

export const CauseStage = Object.freeze({
  DNS: 0,
  TCP: 1,
  PROXY: 2,
  TLS_IO: 3,
  TLS_CERTIFICATE: 4,
  HELLO: 5,
  AUTHENTICATION: 6,
  OPERATION: 7,
});

export const CheckOutError = Object.freeze({
  NONE: 0,
  POOL_CLOSED: 1,
  POOL_CLEARED: 2,
  WAIT_QUEUE_TIMEOUT: 3,
  ESTABLISH_FAILED: 4,
  CANCELLED: 5,
  WAIT_QUEUE_FULL: 6,
  SHED: 7,
});

export const CheckVerdict = Object.freeze({
  KEEP: 0,
  REQUEST: 1,
  CANCEL: 2,
});

export const ClosedReason = Object.freeze({
  ERROR: 0,
  STALE: 1,
  IDLE: 2,
  POOL_CLOSED: 3,
});

export const ConnectionState = Object.freeze({
  PENDING: 0,
  AVAILABLE: 1,
  IN_USE: 2,
  PENDING_RESPONSE: 3,
  DRAINING: 4,
});

export const DeadlineReason = Object.freeze({
  NONE: 0,
  WAIT_QUEUE_TIMEOUT: 1,
  IDLE_TIME: 2,
  LIFETIME: 3,
  POPULATE: 4,
  LEAK_DETECTION: 5,
  UNANSWERED: 6,
  PENDING_RESPONSE: 7,
  STANDING_DELAY: 8,
  ESTABLISHMENT: 9,
});

export const EventKind = Object.freeze({
  NONE: 0,
  POOL_CREATED: 1,
  POOL_READY: 2,
  POOL_CLEARED: 3,
  POOL_CLOSED: 4,
  CONNECTION_CREATED: 5,
  CONNECTION_READY: 6,
  CONNECTION_CLOSED: 7,
  CHECK_OUT_STARTED: 8,
  CHECK_OUT_FAILED: 9,
  CHECKED_OUT: 10,
  CHECKED_IN: 11,
  PENDING_RESPONSE_STARTED: 12,
  PENDING_RESPONSE_SUCCEEDED: 13,
  PENDING_RESPONSE_FAILED: 14,
});

export const FailedReason = Object.freeze({
  POOL_CLOSED: 0,
  TIMEOUT: 1,
  CONNECTION_ERROR: 2,
});

export const PoolStatus = Object.freeze({
  PAUSED: 0,
  READY: 1,
  CLOSED: 2,
});

export const PoolVerdict = Object.freeze({
  KEEP: 0,
  CLEAR: 1,
  CLEAR_AND_INTERRUPT: 2,
  CLEAR_SERVICE: 3,
});

export const Purpose = Object.freeze({
  OTHER: 0,
  CURSOR: 1,
  TRANSACTION: 2,
});

export const ServerVerdict = Object.freeze({
  KEEP: 0,
  UNKNOWN: 1,
  UNKNOWN_WITH_TOPOLOGY_VERSION: 2,
});

export const Status = Object.freeze({
  OK: 0,
  BAD_POINTER: 1,
  BAD_HANDLE: 2,
  BUSY: 3,
  BAD_SIZE: 4,
  BAD_VALUE: 5,
  NOT_UTF8: 6,
  BAD_TEXT: 7,
  BAD_OPTIONS: 8,
  MISUSE: 9,
  TRUNCATED: 10,
  NOTHING: 11,
  FULL: 12,
  PANICKED: 13,
});

export const TextKind = Object.freeze({
  NAME: 0,
  MESSAGE: 1,
  EXPLANATION: 2,
  LABELS: 3,
  LABELS_RETRY_WRITES: 4,
  EVENT: 5,
  REASON: 6,
  LOG: 7,
  LOG_JSON: 8,
  ADDRESS: 9,
});
