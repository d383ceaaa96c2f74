// Numbers and structures of libcenote in WebAssembly: cenote.h explains them. Written by make_abi.py.

export declare const ActionKind: {
  /** Nothing is left to do. */
  readonly NONE: 0;
  /** Connect, say hello, authenticate; then answer with `established` or `establishFailed`, exactly once, unless `ActionKind.ABORT_ESTABLISH` comes first. Has `connection`, `deadline` (of the request: it ends the request, and not this; `connectTimeoutMS` does, which the driver applies), `background`, or else `owner`, and `generation`. */
  readonly START_ESTABLISH: 1;
  /** Stop establishing `connection`, and drop its socket. No answer is owed. */
  readonly ABORT_ESTABLISH: 2;
  /** Wake `waiter`: with `connection`, which is in use now, and its `payload`; or with `error`, if that is not 0. */
  readonly DELIVER: 3;
  /** Close the socket `payload` of `connection`, without blocking. */
  readonly CLOSE_SOCKET: 4;
  /** Abort the operation on `connection` at once, with an error that can be retried. It still has to be checked in. */
  readonly INTERRUPT: 5;
  /** `connection` has been in use for `duration`, longer than `leakDetectionThreshold`. */
  readonly REPORT_LEAK: 6;
  /** Notify subscribers of the `event`, in this place of the order; log it (`TextKind.LOG`). */
  readonly EMIT_EVENT: 7;
  /** Read and discard the late reply on `connection`, whose socket is `payload`. Answer with `drained` or `drainFailed`, exactly once, unless `ActionKind.ABORT_DRAIN` comes first; report bytes with `drainProgress`. */
  readonly START_DRAIN: 8;
  /** Stop draining `connection`, and drop its socket. No answer is owed. */
  readonly ABORT_DRAIN: 9;
  /** `connection` has been pending for `duration`, longer than `unansweredThreshold`: perhaps its answer was lost. */
  readonly REPORT_UNANSWERED: 10;
};
export type ActionKind = (typeof ActionKind)[keyof typeof ActionKind];

export declare const CauseKind: {
  /** The network failed: refused, reset, end of stream, a name that does not resolve. */
  readonly NETWORK: 0;
  /** A limit of this side ran out; `after` says how long it was. */
  readonly TIMEOUT: 1;
  /** The time was over before the request was sent; `after` says how long it was. */
  readonly NOT_SENT: 2;
  /** The server replied with an error; `code`, `codeName`, `labels` and the topology version are its. */
  readonly COMMAND: 3;
  /** The server answered something that must not be accepted; also a certificate that does not verify. */
  readonly PROTOCOL: 4;
  /** The configuration does not work. */
  readonly CONFIGURATION: 5;
  /** This process lacks files, memory, ports or threads. It says nothing about the server. */
  readonly LOCAL: 6;
};
export type CauseKind = (typeof CauseKind)[keyof typeof CauseKind];

export declare const CauseStage: {
  /** Turning the host's name into addresses. */
  readonly DNS: 0;
  /** The TCP (or Unix domain) connect. */
  readonly TCP: 1;
  /** Reaching a SOCKS5 proxy, and its answer. */
  readonly PROXY: 2;
  /** The TLS handshake, but for the certificate. */
  readonly TLS_IO: 3;
  /** The certificate of the server. */
  readonly TLS_CERTIFICATE: 4;
  /** The first command and its reply. */
  readonly HELLO: 5;
  /** The authentication commands after hello. */
  readonly AUTHENTICATION: 6;
  /** An established connection, used by an application. */
  readonly OPERATION: 7;
};
export type CauseStage = (typeof CauseStage)[keyof typeof CauseStage];

export declare const CheckOutError: {
  /** It has a connection. */
  readonly NONE: 0;
  /** PoolClosedError. */
  readonly POOL_CLOSED: 1;
  /** PoolClearedError. Has a cause, unless the pool has never been ready. */
  readonly POOL_CLEARED: 2;
  /** WaitQueueTimeoutError. */
  readonly WAIT_QUEUE_TIMEOUT: 3;
  /** The connection that was started for the request could not be established. Has a cause. */
  readonly ESTABLISH_FAILED: 4;
  /** The caller cancelled the check-out. */
  readonly CANCELLED: 5;
  /** `maxWaitQueueSize` requests waited already. The operation may be tried again after a backoff. */
  readonly WAIT_QUEUE_FULL: 6;
  /** It had waited for longer than `codelTarget` when the delay had stood for a whole `codelInterval`. The operation may be tried again after a backoff. */
  readonly SHED: 7;
};
export type CheckOutError = (typeof CheckOutError)[keyof typeof CheckOutError];

export declare const CheckVerdict: {
  /** Nothing. */
  readonly KEEP: 0;
  /** Check at once. */
  readonly REQUEST: 1;
  /** Cancel the check in progress, and close the monitor's connection. */
  readonly CANCEL: 2;
};
export type CheckVerdict = (typeof CheckVerdict)[keyof typeof CheckVerdict];

export declare const ClosedReason: {
  /** An error; the action has a cause. */
  readonly ERROR: 0;
  /** It is of an older generation. */
  readonly STALE: 1;
  /** It was available for too long, outlived its lifetime, or is surplus. */
  readonly IDLE: 2;
  /** The pool was closed. */
  readonly POOL_CLOSED: 3;
};
export type ClosedReason = (typeof ClosedReason)[keyof typeof ClosedReason];

export declare const ConnectionState: {
  /** Being established. */
  readonly PENDING: 0;
  /** Waiting in the pool. */
  readonly AVAILABLE: 1;
  /** Checked out. */
  readonly IN_USE: 2;
  /** Waiting in the pool, and a late reply has to be read before it can be used. */
  readonly PENDING_RESPONSE: 3;
  /** A late reply is being read. */
  readonly DRAINING: 4;
};
export type ConnectionState = (typeof ConnectionState)[keyof typeof ConnectionState];

export declare const DeadlineReason: {
  /** Nothing. */
  readonly NONE: 0;
  /** A request has waited for as long as it may. */
  readonly WAIT_QUEUE_TIMEOUT: 1;
  /** A connection has been available for longer than `maxIdleTimeMS`. */
  readonly IDLE_TIME: 2;
  /** A connection reaches the end of its lifetime. */
  readonly LIFETIME: 3;
  /** The pause after a failed establishment ends. */
  readonly POPULATE: 4;
  /** A connection has been in use for longer than `leakDetectionThreshold`. */
  readonly LEAK_DETECTION: 5;
  /** A connection has been pending for longer than `unansweredThreshold`. */
  readonly UNANSWERED: 6;
  /** A late reply has been awaited for as long as it may. */
  readonly PENDING_RESPONSE: 7;
  /** The oldest request has not waited for less than `codelTarget` for a whole `codelInterval`. */
  readonly STANDING_DELAY: 8;
  /** A connection that waits for its time is established. */
  readonly ESTABLISHMENT: 9;
};
export type DeadlineReason = (typeof DeadlineReason)[keyof typeof DeadlineReason];

export declare const EventKind: {
  /** The action is none. */
  readonly NONE: 0;
  /** The pool exists. */
  readonly POOL_CREATED: 1;
  /** The pool went from paused to ready. */
  readonly POOL_READY: 2;
  /** A new generation began: `interrupt`; `service` behind a load balancer. */
  readonly POOL_CLEARED: 3;
  /** The pool is closed. */
  readonly POOL_CLOSED: 4;
  /** A connection exists; no I/O has happened yet. */
  readonly CONNECTION_CREATED: 5;
  /** A connection finished establishment: `duration` since it was created. */
  readonly CONNECTION_READY: 6;
  /** A connection no longer counts: `reason` is a `ClosedReason`. */
  readonly CONNECTION_CLOSED: 7;
  /** A caller asked for a connection: `owner`. */
  readonly CHECK_OUT_STARTED: 8;
  /** A request ended without a connection: `owner`, `error`, `duration`; `reason` is a `FailedReason`. */
  readonly CHECK_OUT_FAILED: 9;
  /** A connection is about to be delivered to the request `owner`: `duration` since it asked. */
  readonly CHECKED_OUT: 10;
  /** A connection was returned. */
  readonly CHECKED_IN: 11;
  /** A request waits for a late reply: `requestId`. */
  readonly PENDING_RESPONSE_STARTED: 12;
  /** The late reply was read: `requestId`, `duration`. */
  readonly PENDING_RESPONSE_SUCCEEDED: 13;
  /** The request stopped waiting for it: `requestId`, `duration`; `reason` is 0 after a timeout and 1 after an error. */
  readonly PENDING_RESPONSE_FAILED: 14;
};
export type EventKind = (typeof EventKind)[keyof typeof EventKind];

export declare const FailedReason: {
  /** The pool was closed. */
  readonly POOL_CLOSED: 0;
  /** The time allowed for waiting ran out. */
  readonly TIMEOUT: 1;
  /** The connection could not be established, the pool was cleared, or the caller cancelled. */
  readonly CONNECTION_ERROR: 2;
};
export type FailedReason = (typeof FailedReason)[keyof typeof FailedReason];

export declare const PoolStatus: {
  /** At first, and after a clear: no check-outs, nothing is created. */
  readonly PAUSED: 0;
  /** Serves check-outs and keeps up the minimum. */
  readonly READY: 1;
  /** For good. */
  readonly CLOSED: 2;
};
export type PoolStatus = (typeof PoolStatus)[keyof typeof PoolStatus];

export declare const PoolVerdict: {
  /** Nothing. */
  readonly KEEP: 0;
  /** `clear`. */
  readonly CLEAR: 1;
  /** `clear` with `interrupt`. */
  readonly CLEAR_AND_INTERRUPT: 2;
  /** `clear` with the service of the failed connection (`connection`). */
  readonly CLEAR_SERVICE: 3;
};
export type PoolVerdict = (typeof PoolVerdict)[keyof typeof PoolVerdict];

export declare const Purpose: {
  /** One operation. */
  readonly OTHER: 0;
  /** A cursor is pinned to it. */
  readonly CURSOR: 1;
  /** A transaction is pinned to it. */
  readonly TRANSACTION: 2;
};
export type Purpose = (typeof Purpose)[keyof typeof Purpose];

export declare const ServerVerdict: {
  /** Nothing. */
  readonly KEEP: 0;
  /** Its type becomes Unknown, without a topology version. */
  readonly UNKNOWN: 1;
  /** Its type becomes Unknown, with the topology version of the error. */
  readonly UNKNOWN_WITH_TOPOLOGY_VERSION: 2;
};
export type ServerVerdict = (typeof ServerVerdict)[keyof typeof ServerVerdict];

export declare const Status: {
  /** It is done. */
  readonly OK: 0;
  /** A pointer is null or not aligned. */
  readonly BAD_POINTER: 1;
  /** No such pool, client or cause: it is null, was freed, or is of another kind. */
  readonly BAD_HANDLE: 2;
  /** Another thread is in a call with this pool or client: take a lock around each call. */
  readonly BUSY: 3;
  /** The field `size` of a structure is not the size that this library knows. */
  readonly BAD_SIZE: 4;
  /** A number is none of its enum, or out of range. */
  readonly BAD_VALUE: 5;
  /** A text is not UTF-8. */
  readonly NOT_UTF8: 6;
  /** A text is not what it has to be: an address, or a connection string. */
  readonly BAD_TEXT: 7;
  /** No pool or client can work with these options. */
  readonly BAD_OPTIONS: 8;
  /** The machine refuses the input, which makes no sense in its state. */
  readonly MISUSE: 9;
  /** The buffer is too short for the text. It holds the beginning, and the length is the whole one. */
  readonly TRUNCATED: 10;
  /** There is nothing of that kind: no error in the last action, no such connection or server, no trace. */
  readonly NOTHING: 11;
  /** There are as many handles as there can be. */
  readonly FULL: 12;
  /** A bug of the library. The pool or client cannot be used any more; free it. */
  readonly PANICKED: 13;
};
export type Status = (typeof Status)[keyof typeof Status];

export declare const TextKind: {
  /** The type of a check-out's error, as the specification names it: `PoolClearedError`. */
  readonly NAME: 0;
  /** The message that the specification has the error say; of a cause, the whole of it. */
  readonly MESSAGE: 1;
  /** The message, the server, and after a timeout what the pool looked like. */
  readonly EXPLANATION: 2;
  /** The labels of the error, separated by spaces. */
  readonly LABELS: 3;
  /** The labels if the client retries writes. */
  readonly LABELS_RETRY_WRITES: 4;
  /** The type of an event, as the specification names it: `ConnectionReadyEvent` is `ConnectionReady`. */
  readonly EVENT: 5;
  /** The reason of an event, as the specification spells it: `poolClosed`. */
  readonly REASON: 6;
  /** The log message for an event: one line, of severity debug and component `connection`. */
  readonly LOG: 7;
  /** The log message as JSON: an object with `message` and the fields of the specification. */
  readonly LOG_JSON: 8;
  /** Where a server is: `host:port`, or the path of a UNIX domain socket. Actions of clients have it. */
  readonly ADDRESS: 9;
};
export type TextKind = (typeof TextKind)[keyof typeof TextKind];

export interface Options {
  /** `maxPoolSize`; 0 is without limit, default 100. */
  maxPoolSize?: number;
  /** `minPoolSize`; default 0. */
  minPoolSize?: number;
  /** `maxIdleTimeMS`; 0 is never, which is the default. */
  maxIdleTime?: number;
  /** `maxConnecting`; default 2. */
  maxConnecting?: number;
  /** `waitQueueTimeoutMS`; 0 is without limit, which is the default. */
  waitQueueTimeout?: number;
  /** Whether the pool is behind a load balancer: 0 or 1; default 0. */
  loadBalanced?: number;
  /** How long the minimum is left alone after a failed establishment; default 1 s. `NO_MAINTENANCE`: no minimum is kept, and perished connections are closed when a check-out meets them. */
  pauseAfterFailure?: number;
  /** Which available connection is handed out first: 0 the one used last, 1 the one that has waited longest; default 0. */
  reuseOrder?: number;
  /** How long a connection may exist, less up to a tenth of it; 0 is for ever, which is the default. */
  maxLifetime?: number;
  /** The seed of that tenth: any other number, drawn at random so that pools differ. */
  jitterSeed?: number;
  /** How long a connection may be in use before it is reported; 0 is never, which is the default. */
  leakDetectionThreshold?: number;
  /** How long a connection may be pending before it is reported; 0 is never, which is the default. */
  unansweredThreshold?: number;
  /** Whether connections whose reply is late are kept: 0 or 1; default 0. Experimental, as of DRIVERS-2884. */
  experimentalPendingResponse?: number;
  /** The length at which texts in log records are cut, in characters; default 1000. Not an option of the machine: `setOptions` ignores it. */
  maxLogText?: number;
  /** How many requests may wait; 0 is without limit, which is the default. */
  maxWaitQueueSize?: number;
  /** Requests that have waited for longer fail once the oldest wait was never below it for a whole `codelInterval`; 0 is never, which is the default; 5 ms with an interval alone. */
  codelTarget?: number;
  /** For how long the delay has to stand; 0 is never, which is the default; 100 ms with a target alone. */
  codelInterval?: number;
  /** The unit of the pause after an establishment that failed because of overload, during which no connection is established; 0 is no pause, which is the default. */
  overloadBackoff?: number;
  /** Whether fewer than `maxConnecting` connections are pending at once while more would delay each other: 0 or 1; default 0. */
  adaptiveConnecting?: number;
  /** Whether the minimum grows to the demand of the recent past: 0 or 1; default 0. */
  predictiveMinPoolSize?: number;
}

export interface Action {
  kind: ActionKind;
  /** How many actions are left after this one. */
  remaining: number;
  event: EventKind;
  /** CMAP's id of the connection, from 1. */
  connection: number;
  /** The payload of the connection, as it came with `established`. */
  payload: number;
  /** The waiter of the request, as it came with `checkOut`. */
  waiter: number;
  /** When the caller gives up; `Infinity` if it does not. */
  deadline: number;
  /** How long something took. */
  duration: number;
  /** The request that the connection is made for, as it was given to `checkOut`. It may end before the establishment does. In an event of a check-out, the request. */
  owner: number;
  /** The pool's generation. Behind a load balancer the connection takes that of its service when hello is done. */
  generation: number;
  error: CheckOutError;
  /** Why, by a number that the event explains. */
  reason: number;
  /** The request whose reply is late. */
  requestId: number;
  /** The service behind the load balancer, if `hasService`. */
  service: Uint8Array | null;
  /** Whether connections in use are interrupted. */
  interrupt: boolean;
  /** Whether the connection is made for `minPoolSize`, without a request. */
  background: boolean;
  /** Whether `actionCause` has the cause of the error. */
  hasCause: boolean;
  /** Whether an operation that failed with this error may be tried again. */
  isRetryable: boolean;
  /** Whether a limit of this side ran out: what a driver with `timeoutMS` raises as its timeout error. */
  isTimeout: boolean;
}

export interface VerdictInfo {
  server: ServerVerdict;
  pool: PoolVerdict;
  check: CheckVerdict;
}

export interface SnapshotInfo {
  status: PoolStatus;
  /** The pool's generation; services have their own. */
  generation: number;
  /** Pending, available and in use together. */
  total: number;
  /** Available connections. */
  available: number;
  /** How many of those have to receive a late reply before they can be used. */
  pendingResponse: number;
  /** Connections in use. */
  inUse: number;
  /** Connections being established. */
  pending: number;
  /** The effective `maxPoolSize`; 0 is without limit. */
  maxPoolSize: number;
  /** The effective `minPoolSize`. */
  minPoolSize: number;
  /** The effective `maxConnecting`. */
  maxConnecting: number;
  /** Connections in use by cursors. */
  inUseByCursors: number;
  /** Connections in use by transactions. */
  inUseByTransactions: number;
  /** Connections in use by anything else. */
  inUseByOthers: number;
  /** 1 behind a load balancer, otherwise 0. */
  loadBalanced: number;
  /** Requests in the wait queue. */
  waiting: number;
  /** Requests that own a connection that is not ready yet. */
  owners: number;
  /** How many connections there have ever been. */
  connectionsCreated: number;
  /** How often time ran backwards and was held where it was. */
  clockRegressions: number;
  /** How many actions were not pulled yet. */
  actions: number;
}

export interface ConnectionInfo {
  state: ConnectionState;
  /** CMAP's id, from 1. */
  connection: number;
  /** Its generation: of its service behind a load balancer, otherwise of the pool. */
  generation: number;
  /** When it was created. */
  created: number;
  /** Since when it has been in its state. */
  since: number;
  /** Its service, if `hasService`. */
  service: Uint8Array | null;
  /** Whether it is of an older generation than its pool or service. */
  isStale: boolean;
}
