/*
 * libcenote: MongoDB's connection pool (Connection Monitoring and Pooling, CMAP) as a deterministic state machine, and the client
 * of several servers that pools belong to (cenote_client).
 *
 * A driver tells a pool what happened, each time with the present time (one function for each kind of input), and then pulls
 * and performs the actions that follow, until there is none (cenote_next_action). The library has no socket, thread, clock or
 * callback: nothing of the driver runs inside a call. Payloads and waiters are numbers or pointers of the driver, which come
 * back as they were given. Made by cbindgen from core/c/src; README.md beside it shows a driver's loop.
 *
 * Threads. Any thread can use any pool or client, but only one at a time: take a lock of your own around each call with it, and
 * around an action and the calls about it (cenote_action_cause, cenote_client_action_text, ...). The library waits for no lock. A call
 * that finds another thread in a call with the same pool or client changes nothing and returns CENOTE_STATUS_BUSY. Perform actions in the order
 * in which they were pulled, outside of the lock if they block. Causes can be used by any threads at the same time. The text of
 * cenote_last_error is one per thread. After fork(), the child calls cenote_reset_after_fork first; a pool that another
 * thread was using during the fork is busy for ever there. A child makes a client of its own: the sockets are the parent's.
 *
 * Errors. Every function returns a cenote_status. Unless it is CENOTE_STATUS_OK, nothing has changed, and cenote_last_error says
 * why. Pools, clients and causes are handles that are looked up: null, freed twice, used after being freed, or of the wrong type are
 * errors (CENOTE_STATUS_BAD_HANDLE), and nothing worse. Other pointers are followed: null and misaligned ones are errors, but one that
 * points to something else is undefined, as everywhere in C. Structures begin with their size, which has to be right.
 *
 * Memory. What the library returns by pointer is written into memory of the caller. A pool lives until cenote_pool_free, a
 * client until cenote_client_free, a cause until its last reference is released. Texts end with a zero byte and are UTF-8, in both directions. Times are
 * nanoseconds of one clock that does not run backwards, such as CLOCK_MONOTONIC.
 *
 * Versions. Numbers, functions and the layout of structures do not change within a minor version 0.N, and later within a
 * major one; there can be more of them.
 */

#ifndef CENOTE_H
#define CENOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CENOTE_OPTIONS_INIT \
    { sizeof(cenote_options), 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 }
#define CENOTE_CAUSE_OPTIONS_INIT \
    { sizeof(cenote_cause_options), CENOTE_CAUSE_STAGE_OPERATION, CENOTE_CAUSE_KIND_NETWORK, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0 }
#define CENOTE_ACTION_INIT \
    { sizeof(cenote_action), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, 0, 0, { 0 } }
#define CENOTE_SNAPSHOT_INFO_INIT \
    { sizeof(cenote_snapshot_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
#define CENOTE_CONNECTION_INFO_INIT \
    { sizeof(cenote_connection_info), 0, 0, 0, 0, 0, { 0 }, 0, 0, { 0 } }
#define CENOTE_VERDICT_INIT { sizeof(cenote_verdict_info), 0, 0, 0 }
#define CENOTE_CLIENT_ACTION_INIT \
    { sizeof(cenote_client_action), 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, 0, { 0 } }
#define CENOTE_SERVER_INFO_INIT { sizeof(cenote_server_info), 0, 0, 0, { 0 } }

// No deadline; as a time, the end of it.
#define CENOTE_NEVER UINT64_MAX

// An option that is not set: its default applies, and no event or log record mentions it.
#define CENOTE_NOT_SET -1

// As `pause_after_failure`: the pool never runs maintenance.
#define CENOTE_NO_MAINTENANCE -2

// The result of a call. After every status but `CENOTE_STATUS_OK` nothing has changed, unless it says so.
// `cenote_last_error` has the reason as a text.
enum cenote_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It is done.
    CENOTE_STATUS_OK = 0,
    // A pointer is null or not aligned.
    CENOTE_STATUS_BAD_POINTER = 1,
    // No such pool, client or cause: it is null, was freed, or is of another kind.
    CENOTE_STATUS_BAD_HANDLE = 2,
    // Another thread is in a call with this pool or client: take a lock around each call.
    CENOTE_STATUS_BUSY = 3,
    // The field `size` of a structure is not the size that this library knows.
    CENOTE_STATUS_BAD_SIZE = 4,
    // A number is none of its enum, or out of range.
    CENOTE_STATUS_BAD_VALUE = 5,
    // A text is not UTF-8.
    CENOTE_STATUS_NOT_UTF8 = 6,
    // A text is not what it has to be: an address, or a connection string.
    CENOTE_STATUS_BAD_TEXT = 7,
    // No pool or client can work with these options.
    CENOTE_STATUS_BAD_OPTIONS = 8,
    // The machine refuses the input, which makes no sense in its state.
    CENOTE_STATUS_MISUSE = 9,
    // The buffer is too short for the text. It holds the beginning, and the length is the whole one.
    CENOTE_STATUS_TRUNCATED = 10,
    // There is nothing of that kind: no error in the last action, no such connection or server, no trace.
    CENOTE_STATUS_NOTHING = 11,
    // There are as many handles as there can be.
    CENOTE_STATUS_FULL = 12,
    // A bug of the library. The pool or client cannot be used any more; free it.
    CENOTE_STATUS_PANICKED = 13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_status cenote_status;
#else
typedef uint32_t cenote_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What the driver has to do. Actions are performed in the order in which they are pulled.
enum cenote_action_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing is left to do.
    CENOTE_ACTION_KIND_NONE = 0,
    // Connect, say hello, authenticate; then answer with `cenote_established` or `cenote_establish_failed`, exactly
    // once, unless `CENOTE_ACTION_KIND_ABORT_ESTABLISH` comes first. Has `connection`, `deadline` (of the request: it ends the
    // request, and not this; `connectTimeoutMS` does, which the driver applies), `background`, or else `owner`, and `generation`.
    CENOTE_ACTION_KIND_START_ESTABLISH = 1,
    // Stop establishing `connection`, and drop its socket. No answer is owed.
    CENOTE_ACTION_KIND_ABORT_ESTABLISH = 2,
    // Wake `waiter`: with `connection`, which is in use now, and its `payload`; or with `error`, if that is not 0.
    CENOTE_ACTION_KIND_DELIVER = 3,
    // Close the socket `payload` of `connection`, without blocking.
    CENOTE_ACTION_KIND_CLOSE_SOCKET = 4,
    // Abort the operation on `connection` at once, with an error that can be retried. It still has to be checked in.
    CENOTE_ACTION_KIND_INTERRUPT = 5,
    // `connection` has been in use for `duration`, longer than `leak_detection_threshold`.
    CENOTE_ACTION_KIND_REPORT_LEAK = 6,
    // Notify subscribers of the `event`, in this place of the order; log it (`CENOTE_TEXT_KIND_LOG`).
    CENOTE_ACTION_KIND_EMIT_EVENT = 7,
    // Read and discard the late reply on `connection`, whose socket is `payload`. Answer with `cenote_drained` or
    // `cenote_drain_failed`, exactly once, unless `CENOTE_ACTION_KIND_ABORT_DRAIN` comes first; report bytes with
    // `cenote_drain_progress`.
    CENOTE_ACTION_KIND_START_DRAIN = 8,
    // Stop draining `connection`, and drop its socket. No answer is owed.
    CENOTE_ACTION_KIND_ABORT_DRAIN = 9,
    // `connection` has been pending for `duration`, longer than `unanswered_threshold`: perhaps its answer was lost.
    CENOTE_ACTION_KIND_REPORT_UNANSWERED = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_action_kind cenote_action_kind;
#else
typedef uint32_t cenote_action_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What kind of failure it is.
enum cenote_cause_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The network failed: refused, reset, end of stream, a name that does not resolve.
    CENOTE_CAUSE_KIND_NETWORK = 0,
    // A limit of this side ran out; `after` says how long it was.
    CENOTE_CAUSE_KIND_TIMEOUT = 1,
    // The time was over before the request was sent; `after` says how long it was.
    CENOTE_CAUSE_KIND_NOT_SENT = 2,
    // The server replied with an error; `code`, `code_name`, `labels` and the topology version are its.
    CENOTE_CAUSE_KIND_COMMAND = 3,
    // The server answered something that must not be accepted; also a certificate that does not verify.
    CENOTE_CAUSE_KIND_PROTOCOL = 4,
    // The configuration does not work.
    CENOTE_CAUSE_KIND_CONFIGURATION = 5,
    // This process lacks files, memory, ports or threads. It says nothing about the server.
    CENOTE_CAUSE_KIND_LOCAL = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_cause_kind cenote_cause_kind;
#else
typedef uint32_t cenote_cause_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How far a connection had come when it failed. All but the last belong to establishing it.
enum cenote_cause_stage
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Turning the host's name into addresses.
    CENOTE_CAUSE_STAGE_DNS = 0,
    // The TCP (or Unix domain) connect.
    CENOTE_CAUSE_STAGE_TCP = 1,
    // Reaching a SOCKS5 proxy, and its answer.
    CENOTE_CAUSE_STAGE_PROXY = 2,
    // The TLS handshake, but for the certificate.
    CENOTE_CAUSE_STAGE_TLS_IO = 3,
    // The certificate of the server.
    CENOTE_CAUSE_STAGE_TLS_CERTIFICATE = 4,
    // The first command and its reply.
    CENOTE_CAUSE_STAGE_HELLO = 5,
    // The authentication commands after hello.
    CENOTE_CAUSE_STAGE_AUTHENTICATION = 6,
    // An established connection, used by an application.
    CENOTE_CAUSE_STAGE_OPERATION = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_cause_stage cenote_cause_stage;
#else
typedef uint32_t cenote_cause_stage;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a request ended without a connection. Never shown to SDAM, which knows the cause already.
enum cenote_check_out_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It has a connection.
    CENOTE_CHECK_OUT_ERROR_NONE = 0,
    // PoolClosedError.
    CENOTE_CHECK_OUT_ERROR_POOL_CLOSED = 1,
    // PoolClearedError. Has a cause, unless the pool has never been ready.
    CENOTE_CHECK_OUT_ERROR_POOL_CLEARED = 2,
    // WaitQueueTimeoutError.
    CENOTE_CHECK_OUT_ERROR_WAIT_QUEUE_TIMEOUT = 3,
    // The connection that was started for the request could not be established. Has a cause.
    CENOTE_CHECK_OUT_ERROR_ESTABLISH_FAILED = 4,
    // The caller cancelled the check-out.
    CENOTE_CHECK_OUT_ERROR_CANCELLED = 5,
    // `max_wait_queue_size` requests waited already. The operation may be tried again after a backoff.
    CENOTE_CHECK_OUT_ERROR_WAIT_QUEUE_FULL = 6,
    // It had waited for longer than `codel_target` when the delay had stood for a whole `codel_interval`. The operation may be tried again after a backoff.
    CENOTE_CHECK_OUT_ERROR_SHED = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_check_out_error cenote_check_out_error;
#else
typedef uint32_t cenote_check_out_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a connection was closed.
enum cenote_closed_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // An error; the action has a cause.
    CENOTE_CLOSED_REASON_ERROR = 0,
    // It is of an older generation.
    CENOTE_CLOSED_REASON_STALE = 1,
    // It was available for too long, outlived its lifetime, or is surplus.
    CENOTE_CLOSED_REASON_IDLE = 2,
    // The pool was closed.
    CENOTE_CLOSED_REASON_POOL_CLOSED = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_closed_reason cenote_closed_reason;
#else
typedef uint32_t cenote_closed_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of a connection.
enum cenote_connection_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Being established.
    CENOTE_CONNECTION_STATE_PENDING = 0,
    // Waiting in the pool.
    CENOTE_CONNECTION_STATE_AVAILABLE = 1,
    // Checked out.
    CENOTE_CONNECTION_STATE_IN_USE = 2,
    // Waiting in the pool, and a late reply has to be read before it can be used.
    CENOTE_CONNECTION_STATE_PENDING_RESPONSE = 3,
    // A late reply is being read.
    CENOTE_CONNECTION_STATE_DRAINING = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_connection_state cenote_connection_state;
#else
typedef uint32_t cenote_connection_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What is due at a deadline.
enum cenote_deadline_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing.
    CENOTE_DEADLINE_REASON_NONE = 0,
    // A request has waited for as long as it may.
    CENOTE_DEADLINE_REASON_WAIT_QUEUE_TIMEOUT = 1,
    // A connection has been available for longer than `maxIdleTimeMS`.
    CENOTE_DEADLINE_REASON_IDLE_TIME = 2,
    // A connection reaches the end of its lifetime.
    CENOTE_DEADLINE_REASON_LIFETIME = 3,
    // The pause after a failed establishment ends.
    CENOTE_DEADLINE_REASON_POPULATE = 4,
    // A connection has been in use for longer than `leak_detection_threshold`.
    CENOTE_DEADLINE_REASON_LEAK_DETECTION = 5,
    // A connection has been pending for longer than `unanswered_threshold`.
    CENOTE_DEADLINE_REASON_UNANSWERED = 6,
    // A late reply has been awaited for as long as it may.
    CENOTE_DEADLINE_REASON_PENDING_RESPONSE = 7,
    // The oldest request has not waited for less than `codel_target` for a whole `codel_interval`.
    CENOTE_DEADLINE_REASON_STANDING_DELAY = 8,
    // A connection that waits for its time is established.
    CENOTE_DEADLINE_REASON_ESTABLISHMENT = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_deadline_reason cenote_deadline_reason;
#else
typedef uint32_t cenote_deadline_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The events of CMAP, and three of a draft about pending responses. Which fields of the action an event has:
// `connection` where it is about one, and those that are named here.
enum cenote_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The action is none.
    CENOTE_EVENT_KIND_NONE = 0,
    // The pool exists.
    CENOTE_EVENT_KIND_POOL_CREATED = 1,
    // The pool went from paused to ready.
    CENOTE_EVENT_KIND_POOL_READY = 2,
    // A new generation began: `interrupt`; `service` behind a load balancer.
    CENOTE_EVENT_KIND_POOL_CLEARED = 3,
    // The pool is closed.
    CENOTE_EVENT_KIND_POOL_CLOSED = 4,
    // A connection exists; no I/O has happened yet.
    CENOTE_EVENT_KIND_CONNECTION_CREATED = 5,
    // A connection finished establishment: `duration` since it was created.
    CENOTE_EVENT_KIND_CONNECTION_READY = 6,
    // A connection no longer counts: `reason` is a `cenote_closed_reason`.
    CENOTE_EVENT_KIND_CONNECTION_CLOSED = 7,
    // A caller asked for a connection: `owner`.
    CENOTE_EVENT_KIND_CHECK_OUT_STARTED = 8,
    // A request ended without a connection: `owner`, `error`, `duration`; `reason` is a `cenote_failed_reason`.
    CENOTE_EVENT_KIND_CHECK_OUT_FAILED = 9,
    // A connection is about to be delivered to the request `owner`: `duration` since it asked.
    CENOTE_EVENT_KIND_CHECKED_OUT = 10,
    // A connection was returned.
    CENOTE_EVENT_KIND_CHECKED_IN = 11,
    // A request waits for a late reply: `request_id`.
    CENOTE_EVENT_KIND_PENDING_RESPONSE_STARTED = 12,
    // The late reply was read: `request_id`, `duration`.
    CENOTE_EVENT_KIND_PENDING_RESPONSE_SUCCEEDED = 13,
    // The request stopped waiting for it: `request_id`, `duration`; `reason` is 0 after a timeout and 1 after an
    // error.
    CENOTE_EVENT_KIND_PENDING_RESPONSE_FAILED = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_event_kind cenote_event_kind;
#else
typedef uint32_t cenote_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a check-out failed, as its event tells it.
enum cenote_failed_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The pool was closed.
    CENOTE_FAILED_REASON_POOL_CLOSED = 0,
    // The time allowed for waiting ran out.
    CENOTE_FAILED_REASON_TIMEOUT = 1,
    // The connection could not be established, the pool was cleared, or the caller cancelled.
    CENOTE_FAILED_REASON_CONNECTION_ERROR = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_failed_reason cenote_failed_reason;
#else
typedef uint32_t cenote_failed_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of a pool.
enum cenote_pool_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // At first, and after a clear: no check-outs, nothing is created.
    CENOTE_POOL_STATUS_PAUSED = 0,
    // Serves check-outs and keeps up the minimum.
    CENOTE_POOL_STATUS_READY = 1,
    // For good.
    CENOTE_POOL_STATUS_CLOSED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_pool_status cenote_pool_status;
#else
typedef uint32_t cenote_pool_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a connection is used for; pools behind a load balancer tell these apart in errors.
enum cenote_purpose
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // One operation.
    CENOTE_PURPOSE_OTHER = 0,
    // A cursor is pinned to it.
    CENOTE_PURPOSE_CURSOR = 1,
    // A transaction is pinned to it.
    CENOTE_PURPOSE_TRANSACTION = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_purpose cenote_purpose;
#else
typedef uint32_t cenote_purpose;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Which text.
enum cenote_text_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The type of a check-out's error, as the specification names it: `PoolClearedError`.
    CENOTE_TEXT_KIND_NAME = 0,
    // The message that the specification has the error say; of a cause, the whole of it.
    CENOTE_TEXT_KIND_MESSAGE = 1,
    // The message, the server, and after a timeout what the pool looked like.
    CENOTE_TEXT_KIND_EXPLANATION = 2,
    // The labels of the error, separated by spaces.
    CENOTE_TEXT_KIND_LABELS = 3,
    // The labels if the client retries writes.
    CENOTE_TEXT_KIND_LABELS_RETRY_WRITES = 4,
    // The type of an event, as the specification names it: `ConnectionReadyEvent` is `ConnectionReady`.
    CENOTE_TEXT_KIND_EVENT = 5,
    // The reason of an event, as the specification spells it: `poolClosed`.
    CENOTE_TEXT_KIND_REASON = 6,
    // The log message for an event: one line, of severity debug and component `connection`.
    CENOTE_TEXT_KIND_LOG = 7,
    // The log message as JSON: an object with `message` and the fields of the specification.
    CENOTE_TEXT_KIND_LOG_JSON = 8,
    // Where a server is: `host:port`, or the path of a UNIX domain socket. Actions of clients have it.
    CENOTE_TEXT_KIND_ADDRESS = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_text_kind cenote_text_kind;
#else
typedef uint32_t cenote_text_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an error does to the monitor of the server.
enum cenote_check_verdict
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing.
    CENOTE_CHECK_VERDICT_KEEP = 0,
    // Check at once.
    CENOTE_CHECK_VERDICT_REQUEST = 1,
    // Cancel the check in progress, and close the monitor's connection.
    CENOTE_CHECK_VERDICT_CANCEL = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_check_verdict cenote_check_verdict;
#else
typedef uint32_t cenote_check_verdict;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an error does to the pool.
enum cenote_pool_verdict
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing.
    CENOTE_POOL_VERDICT_KEEP = 0,
    // `cenote_clear`.
    CENOTE_POOL_VERDICT_CLEAR = 1,
    // `cenote_clear` with `interrupt`.
    CENOTE_POOL_VERDICT_CLEAR_AND_INTERRUPT = 2,
    // `cenote_clear` with the service of the failed connection (`cenote_connection`).
    CENOTE_POOL_VERDICT_CLEAR_SERVICE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_pool_verdict cenote_pool_verdict;
#else
typedef uint32_t cenote_pool_verdict;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an error does to the description of the server.
enum cenote_server_verdict
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing.
    CENOTE_SERVER_VERDICT_KEEP = 0,
    // Its type becomes Unknown, without a topology version.
    CENOTE_SERVER_VERDICT_UNKNOWN = 1,
    // Its type becomes Unknown, with the topology version of the error.
    CENOTE_SERVER_VERDICT_UNKNOWN_WITH_TOPOLOGY_VERSION = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_server_verdict cenote_server_verdict;
#else
typedef uint32_t cenote_server_verdict;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What the driver has to do for a client. Actions are performed in the order in which they are pulled.
enum cenote_client_action_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing is left to do.
    CENOTE_CLIENT_ACTION_KIND_NONE = 0,
    // Make the pool of `server`, whose address `cenote_client_action_text` has: by `cenote_pool_new_ready` if `is_ready`, which
    // it is behind a load balancer, or else by `cenote_pool_new`.
    CENOTE_CLIENT_ACTION_KIND_OPEN_POOL = 1,
    // Call `cenote_ready` with the pool of `server`.
    CENOTE_CLIENT_ACTION_KIND_READY_POOL = 2,
    // Call `cenote_clear` with the pool of `server`, the cause of `cenote_client_action_cause`, `interrupt`, and `service` if
    // `has_service`.
    CENOTE_CLIENT_ACTION_KIND_CLEAR_POOL = 3,
    // Close the pool of `server`, which was removed, and free it when all of its connections are closed.
    CENOTE_CLIENT_ACTION_KIND_CLOSE_POOL = 4,
    // Connect monitoring `socket` to `server`, by TLS if the connection string says so; then
    // `cenote_client_connected` or `cenote_client_socket_failed`. The library counts `connectTimeoutMS`.
    CENOTE_CLIENT_ACTION_KIND_OPEN_SOCKET = 5,
    // Write the `length` bytes of `cenote_client_action_bytes` to monitoring `socket`, all of them, and give what comes back to
    // `cenote_client_received`.
    CENOTE_CLIENT_ACTION_KIND_SEND = 6,
    // Close monitoring `socket`, and forget it. Comes once for each that was to be opened, also after a failure.
    CENOTE_CLIENT_ACTION_KIND_CLOSE_SOCKET = 7,
    // Wake `waiter`: with `server`, or `second` if that is not 0 and its pool has fewer connections in use; or with an error,
    // if `server` is 0, whose message `cenote_client_action_text` has. Where `CENOTE_CLIENT_ACTION_KIND_CLOSE_POOL` comes later,
    // the client has no such server any more, but its pool is still the driver's.
    CENOTE_CLIENT_ACTION_KIND_DELIVER = 8,
    // Notify subscribers of the `event`, in this place of the order; log it (`CENOTE_TEXT_KIND_LOG`).
    CENOTE_CLIENT_ACTION_KIND_EMIT_EVENT = 9,
    // The least `duration` of a round trip to `server` is another one: what a driver subtracts for `maxTimeMS`.
    CENOTE_CLIENT_ACTION_KIND_MIN_ROUND_TRIP = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_client_action_kind cenote_client_action_kind;
#else
typedef uint32_t cenote_client_action_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The events of SDAM, and those of its monitors.
enum cenote_client_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The action is none.
    CENOTE_CLIENT_EVENT_KIND_NONE = 0,
    // The first event.
    CENOTE_CLIENT_EVENT_KIND_TOPOLOGY_OPENING = 1,
    // Something else is known of the deployment: `CENOTE_TEXT_KIND_MESSAGE`.
    CENOTE_CLIENT_EVENT_KIND_TOPOLOGY_DESCRIPTION_CHANGED = 2,
    // The last event.
    CENOTE_CLIENT_EVENT_KIND_TOPOLOGY_CLOSED = 3,
    // A server belongs to the deployment now. Events about servers that are no heartbeats name theirs by
    // `CENOTE_TEXT_KIND_ADDRESS`, as `server` is 0.
    CENOTE_CLIENT_EVENT_KIND_SERVER_OPENING = 4,
    // Something else is known of a server: `CENOTE_TEXT_KIND_MESSAGE`.
    CENOTE_CLIENT_EVENT_KIND_SERVER_DESCRIPTION_CHANGED = 5,
    // A server belongs to the deployment no longer.
    CENOTE_CLIENT_EVENT_KIND_SERVER_CLOSED = 6,
    // A check of `server` begins, on `socket`.
    CENOTE_CLIENT_EVENT_KIND_HEARTBEAT_STARTED = 7,
    // It succeeded, after `duration`.
    CENOTE_CLIENT_EVENT_KIND_HEARTBEAT_SUCCEEDED = 8,
    // It failed, after `duration`; the action has a cause.
    CENOTE_CLIENT_EVENT_KIND_HEARTBEAT_FAILED = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_client_event_kind cenote_client_event_kind;
#else
typedef uint32_t cenote_client_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The type of a server.
enum cenote_server_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Not checked yet, or the last check failed.
    CENOTE_SERVER_KIND_UNKNOWN = 0,
    // A server of its own.
    CENOTE_SERVER_KIND_STANDALONE = 1,
    // A router of a sharded cluster.
    CENOTE_SERVER_KIND_MONGOS = 2,
    // The primary of a replica set.
    CENOTE_SERVER_KIND_RS_PRIMARY = 3,
    // A secondary.
    CENOTE_SERVER_KIND_RS_SECONDARY = 4,
    // An arbiter. Connections to it do not authenticate.
    CENOTE_SERVER_KIND_RS_ARBITER = 5,
    // Another member: hidden, starting, recovering.
    CENOTE_SERVER_KIND_RS_OTHER = 6,
    // A member that has no configuration yet.
    CENOTE_SERVER_KIND_RS_GHOST = 7,
    // A load balancer.
    CENOTE_SERVER_KIND_LOAD_BALANCER = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_server_kind cenote_server_kind;
#else
typedef uint32_t cenote_server_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Which server an operation wants. Servers that belong to no replica set fit each of these.
enum cenote_server_selector
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // As `readPreference`, its tags and `maxStalenessSeconds` in the connection string say; without them the primary.
    CENOTE_SERVER_SELECTOR_READ_PREFERENCE = 0,
    // The primary: what writes need.
    CENOTE_SERVER_SELECTOR_PRIMARY = 1,
    // The primary, or else a secondary.
    CENOTE_SERVER_SELECTOR_PRIMARY_PREFERRED = 2,
    // A secondary.
    CENOTE_SERVER_SELECTOR_SECONDARY = 3,
    // A secondary, or else the primary.
    CENOTE_SERVER_SELECTOR_SECONDARY_PREFERRED = 4,
    // Any member.
    CENOTE_SERVER_SELECTOR_NEAREST = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cenote_server_selector cenote_server_selector;
#else
typedef uint32_t cenote_server_selector;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a connection could not be established, or failed in use.
//
// A counted reference: `cenote_cause_new` gives one, `cenote_cause_retain` another, and
// `cenote_cause_release` takes one back. A call that is given a cause leaves the caller's reference alone.
// Causes never change, and any thread can use them at any time.
typedef struct cenote_cause cenote_cause;

// A client: the state machine, its monitoring sockets as far as bytes go, and the actions that were not pulled yet.
typedef struct cenote_client cenote_client;

// A pool: the state machine, and the actions that were not pulled yet.
typedef struct cenote_pool cenote_pool;

// The options of a pool. `CENOTE_OPTIONS_INIT` is the options of which none is set. Times are in
// nanoseconds.
typedef struct {
    // `sizeof(cenote_options)`.
    uint32_t size;
    // 0, for later versions.
    uint32_t reserved;
    // `maxPoolSize`; 0 is without limit, default 100.
    int64_t max_pool_size;
    // `minPoolSize`; default 0.
    int64_t min_pool_size;
    // `maxIdleTimeMS`; 0 is never, which is the default.
    int64_t max_idle_time;
    // `maxConnecting`; default 2.
    int64_t max_connecting;
    // `waitQueueTimeoutMS`; 0 is without limit, which is the default.
    int64_t wait_queue_timeout;
    // Whether the pool is behind a load balancer: 0 or 1; default 0.
    int64_t load_balanced;
    // How long the minimum is left alone after a failed establishment; default 1 s.
    // `CENOTE_NO_MAINTENANCE`: no minimum is kept, and perished connections are closed when a check-out meets them.
    int64_t pause_after_failure;
    // Which available connection is handed out first: 0 the one used last, 1 the one that has waited
    // longest; default 0.
    int64_t reuse_order;
    // How long a connection may exist, less up to a tenth of it; 0 is for ever, which is the default.
    int64_t max_lifetime;
    // The seed of that tenth: any other number, drawn at random so that pools differ.
    int64_t jitter_seed;
    // How long a connection may be in use before it is reported; 0 is never, which is the default.
    int64_t leak_detection_threshold;
    // How long a connection may be pending before it is reported; 0 is never, which is the default.
    int64_t unanswered_threshold;
    // Whether connections whose reply is late are kept: 0 or 1; default 0. Experimental, as of
    // DRIVERS-2884.
    int64_t experimental_pending_response;
    // The length at which texts in log records are cut, in characters; default 1000. Not an option of
    // the machine: `cenote_set_options` ignores it.
    int64_t max_log_text;
    // How many requests may wait; 0 is without limit, which is the default.
    int64_t max_wait_queue_size;
    // Requests that have waited for longer fail once the oldest wait was never below it for a whole
    // `codel_interval`; 0 is never, which is the default; 5 ms with an interval alone.
    int64_t codel_target;
    // For how long the delay has to stand; 0 is never, which is the default; 100 ms with a target alone.
    int64_t codel_interval;
    // The unit of the pause after an establishment that failed because of overload, during which no
    // connection is established; 0 is no pause, which is the default.
    int64_t overload_backoff;
    // Whether fewer than `max_connecting` connections are pending at once while more would delay each
    // other: 0 or 1; default 0.
    int64_t adaptive_connecting;
    // Whether the minimum grows to the demand of the recent past: 0 or 1; default 0.
    int64_t predictive_min_pool_size;
} cenote_options;

// An action. Fields that an action does not have are 0. Times are in nanoseconds.
typedef struct {
    // `sizeof(cenote_action)`; to be set before the call.
    uint32_t size;
    // A `cenote_action_kind`.
    uint32_t kind;
    // How many actions are left after this one.
    uint32_t remaining;
    // A `cenote_event_kind`.
    uint32_t event;
    // CMAP's id of the connection, from 1.
    uint64_t connection;
    // The payload of the connection, as it came with `cenote_established`.
    uintptr_t payload;
    // The waiter of the request, as it came with `cenote_check_out`.
    uintptr_t waiter;
    // When the caller gives up; `CENOTE_NEVER` if it does not.
    uint64_t deadline;
    // How long something took.
    uint64_t duration;
    // The request that the connection is made for, as it was given to `cenote_check_out`. It may end before the
    // establishment does. In an event of a check-out, the request.
    uint64_t owner;
    // The pool's generation. Behind a load balancer the connection takes that of its service when hello is done.
    uint64_t generation;
    // A `cenote_check_out_error`.
    uint32_t error;
    // Why, by a number that the event explains.
    uint32_t reason;
    // The request whose reply is late.
    int32_t request_id;
    // The service behind the load balancer, if `has_service`.
    uint8_t service[12];
    // Whether `service` is one.
    bool has_service;
    // Whether connections in use are interrupted.
    bool interrupt;
    // Whether the connection is made for `minPoolSize`, without a request.
    bool background;
    // Whether `cenote_action_cause` has the cause of the error.
    bool has_cause;
    // Whether an operation that failed with this error may be tried again.
    bool is_retryable;
    // Whether a limit of this side ran out: what a driver with `timeoutMS` raises as its timeout error.
    bool is_timeout;
    // 0, for later versions.
    uint8_t reserved[26];
} cenote_action;

// What a cause is made of. `CENOTE_CAUSE_OPTIONS_INIT` is a network failure in use, without a text.
typedef struct {
    // `sizeof(cenote_cause_options)`.
    uint32_t size;
    // A `cenote_cause_stage`.
    uint32_t stage;
    // A `cenote_cause_kind`.
    uint32_t kind;
    // Not 0 if the reply has a code.
    uint32_t has_code;
    // The code of an error reply.
    int32_t code;
    // Not 0 if the error is a reply's `writeConcernError`.
    uint32_t is_write_concern_error;
    // Nanoseconds of a limit that ran out.
    uint64_t after;
    // The reason: the message of an error reply, the text of an I/O error. May be null.
    const char *text;
    // The code's name, or null.
    const char *code_name;
    // The labels of an error reply, separated by spaces, or null.
    const char *labels;
    // A number of the driver, such as a pointer to an error object of its own. The library returns it
    // (`cenote_cause_payload`) and does nothing else with it.
    uintptr_t payload;
    // Not 0 if the reply has a topology version.
    uint32_t has_topology_version;
    // Its `processId`.
    uint8_t process_id[12];
    // Its `counter`.
    int64_t counter;
} cenote_cause_options;

// What follows from an error: first for the server's description, then for the pool, then for the monitor.
typedef struct {
    // `sizeof(cenote_verdict_info)`; to be set before the call.
    uint32_t size;
    // A `cenote_server_verdict`.
    uint32_t server;
    // A `cenote_pool_verdict`.
    uint32_t pool;
    // A `cenote_check_verdict`.
    uint32_t check;
} cenote_verdict_info;

// Counts, state and generation of a pool.
typedef struct {
    // `sizeof(cenote_snapshot_info)`; to be set before the call.
    uint32_t size;
    // A `cenote_pool_status`.
    uint32_t status;
    // The pool's generation; services have their own.
    uint64_t generation;
    // Pending, available and in use together.
    uint32_t total;
    // Available connections.
    uint32_t available;
    // How many of those have to receive a late reply before they can be used.
    uint32_t pending_response;
    // Connections in use.
    uint32_t in_use;
    // Connections being established.
    uint32_t pending;
    // The effective `maxPoolSize`; 0 is without limit.
    uint32_t max_pool_size;
    // The effective `minPoolSize`.
    uint32_t min_pool_size;
    // The effective `maxConnecting`.
    uint32_t max_connecting;
    // Connections in use by cursors.
    uint32_t in_use_by_cursors;
    // Connections in use by transactions.
    uint32_t in_use_by_transactions;
    // Connections in use by anything else.
    uint32_t in_use_by_others;
    // 1 behind a load balancer, otherwise 0.
    uint32_t load_balanced;
    // Requests in the wait queue.
    uint64_t waiting;
    // Requests that own a connection that is not ready yet.
    uint64_t owners;
    // How many connections there have ever been.
    uint64_t connections_created;
    // How often time ran backwards and was held where it was.
    uint64_t clock_regressions;
    // How many actions were not pulled yet.
    uint64_t actions;
} cenote_snapshot_info;

// A connection, as it is at one moment.
typedef struct {
    // `sizeof(cenote_connection_info)`; to be set before the call.
    uint32_t size;
    // A `cenote_connection_state`.
    uint32_t state;
    // CMAP's id, from 1.
    uint64_t connection;
    // Its generation: of its service behind a load balancer, otherwise of the pool.
    uint64_t generation;
    // When it was created.
    uint64_t created;
    // Since when it has been in its state.
    uint64_t since;
    // Its service, if `has_service`.
    uint8_t service[12];
    // Whether `service` is one.
    bool has_service;
    // Whether it is of an older generation than its pool or service.
    bool is_stale;
    // 0, for later versions.
    uint8_t reserved[10];
} cenote_connection_info;

// An action of a client. Fields that an action does not have are 0. Times are in nanoseconds.
typedef struct {
    // `sizeof(cenote_client_action)`; to be set before the call.
    uint32_t size;
    // A `cenote_client_action_kind`.
    uint32_t kind;
    // How many actions are left after this one.
    uint32_t remaining;
    // A `cenote_client_event_kind`.
    uint32_t event;
    // The number of a server, from 1. No other server of the client ever has it.
    uint64_t server;
    // The number of a monitoring socket, from 1. Each server counts its own.
    uint64_t socket;
    // Another server that fits.
    uint64_t second;
    // The waiter of the request, as it came with `cenote_client_select`.
    uintptr_t waiter;
    // How long something took.
    uint64_t duration;
    // How many bytes `cenote_client_action_bytes` has.
    size_t length;
    // The service behind the load balancer, if `has_service`.
    uint8_t service[12];
    // Whether `service` is one.
    bool has_service;
    // Whether connections in use are interrupted.
    bool interrupt;
    // Whether the pool is ready from the start.
    bool is_ready;
    // Whether `cenote_client_action_cause` has a cause.
    bool has_cause;
    // Whether no server was found in time: what a driver with `timeoutMS` raises as its timeout error.
    bool is_timeout;
    // 0, for later versions.
    uint8_t reserved[31];
} cenote_client_action;

// What is known of a server.
typedef struct {
    // `sizeof(cenote_server_info)`; to be set before the call.
    uint32_t size;
    // A `cenote_server_kind`.
    uint32_t kind;
    // How long it takes to answer, in nanoseconds, as a moving average; 0 if that is not known.
    uint64_t round_trip;
    // Its `maxWireVersion`; 0 if that is not known.
    int32_t max_wire_version;
    // 0, for later versions.
    uint8_t reserved[44];
} cenote_server_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The reason of the last call on this thread that did not return `CENOTE_STATUS_OK`.
//
// Like all texts: at most `capacity` bytes are written, the last of them 0, and `length` gets the
// length of the whole text without it. `buffer` may be null if `capacity` is 0; `length` may be
// null.
cenote_status cenote_last_error(char *buffer, size_t capacity, size_t *length);

// Makes a pool for the server at `address` (`host:port`), which its texts name: paused and empty. Its first
// action is the event `CENOTE_EVENT_KIND_POOL_CREATED`. Times are nanoseconds of any clock that does not run
// backwards.
cenote_status cenote_pool_new(const char *address,
                              const cenote_options *options,
                              uint64_t now,
                              cenote_pool **pool);

// Makes a pool that is ready from the start: for servers without a monitor, such as those behind a load balancer. There
// is no `CENOTE_EVENT_KIND_POOL_READY`; `minPoolSize` is kept at once. Everything else is as with `cenote_pool_new`.
cenote_status cenote_pool_new_ready(const char *address,
                                    const cenote_options *options,
                                    uint64_t now,
                                    cenote_pool **pool);

// Frees a pool, whatever its state. Its payloads and waiters are the driver's: close it, and perform the
// actions until its snapshot says `total` 0, to get all of them back.
cenote_status cenote_pool_free(cenote_pool *pool);

// Whether actions of kind `CENOTE_ACTION_KIND_EMIT_EVENT` are made; a new pool makes them. A driver that has no
// subscriber and does not log saves time without them.
cenote_status cenote_set_events(cenote_pool *pool,
                                uint32_t wanted);

// Reads the options of a pool from a connection string. All fields are set, those that the string does
// not mention to `CENOTE_NOT_SET`. `options->size` has to be set before.
cenote_status cenote_options_from_uri(const char *uri,
                                      cenote_options *options);

// A caller wants a connection. `request` is greater than every one before it in this pool; `waiter` comes
// back with the outcome, in exactly one action `CENOTE_ACTION_KIND_DELIVER`.
//
// `deadline` is when the caller gives up, and replaces `waitQueueTimeoutMS`; `CENOTE_NEVER` is none. One that is
// not after `now` asks for an idle connection or nothing. `purpose` is a `cenote_purpose`.
cenote_status cenote_check_out(cenote_pool *pool,
                               uint64_t now,
                               uint64_t request,
                               uintptr_t waiter,
                               uint64_t deadline,
                               uint32_t purpose);

// A caller cancelled its check-out. Does nothing if the request has its outcome.
cenote_status cenote_cancel(cenote_pool *pool, uint64_t now, uint64_t request);

// A connection comes back and may be used again.
cenote_status cenote_check_in(cenote_pool *pool,
                              uint64_t now,
                              uint64_t connection,
                              uintptr_t payload);

// A connection comes back and must not be used again: a network error, a timeout, an unread reply. SDAM has
// seen the error (`cenote_verdict`).
cenote_status cenote_check_in_errored(cenote_pool *pool,
                                      uint64_t now,
                                      uint64_t connection,
                                      uintptr_t payload,
                                      const cenote_cause *cause);

// A connection comes back whose caller timed out while it waited for the reply to `request_id`. The request was
// sent whole, and its reply is not part of a stream. Without `experimental_pending_response` the same as
// `cenote_check_in_errored`.
cenote_status cenote_check_in_pending_response(cenote_pool *pool,
                                               uint64_t now,
                                               uint64_t connection,
                                               uintptr_t payload,
                                               int32_t request_id,
                                               const cenote_cause *cause);

// A connection in use serves another purpose from now on, a `cenote_purpose`.
cenote_status cenote_repurpose(cenote_pool *pool,
                               uint64_t now,
                               uint64_t connection,
                               uint32_t purpose);

// Hello is done, authentication is not. Behind a load balancer required, with the 12 bytes of the reply's
// `serviceId`; otherwise optional, and `service` is null.
cenote_status cenote_handshaken(cenote_pool *pool,
                                uint64_t now,
                                uint64_t connection,
                                const uint8_t *service);

// The same for a hello that was done earlier, when `cenote_service_clears` gave this number: if the service was
// cleared since, the connection is closed as stale.
cenote_status cenote_handshaken_late(cenote_pool *pool,
                                     uint64_t now,
                                     uint64_t connection,
                                     const uint8_t *service,
                                     uint64_t clears_at_hello);

// A connection finished handshake and authentication. `payload` is the driver's: a pointer to its socket, a
// file descriptor. If the pool gave the connection up meanwhile, `CENOTE_ACTION_KIND_CLOSE_SOCKET` returns it.
cenote_status cenote_established(cenote_pool *pool,
                                 uint64_t now,
                                 uint64_t connection,
                                 uintptr_t payload);

// A connection could not be established. SDAM has seen the error (`cenote_verdict`).
cenote_status cenote_establish_failed(cenote_pool *pool,
                                      uint64_t now,
                                      uint64_t connection,
                                      const cenote_cause *cause);

// The peer closed an available connection. Does nothing if it is in use or closed by now.
cenote_status cenote_idle_closed_by_peer(cenote_pool *pool,
                                         uint64_t now,
                                         uint64_t connection,
                                         const cenote_cause *cause);

// A late reply was read and discarded.
cenote_status cenote_drained(cenote_pool *pool,
                             uint64_t now,
                             uint64_t connection,
                             uintptr_t payload);

// A late reply could not be read. The driver drops the socket.
cenote_status cenote_drain_failed(cenote_pool *pool,
                                  uint64_t now,
                                  uint64_t connection,
                                  const cenote_cause *cause);

// Bytes of a late reply were read.
cenote_status cenote_drain_progress(cenote_pool *pool, uint64_t now, uint64_t connection);

// Credentials changed: each connection so far is closed as soon as it is not in use. No request fails.
cenote_status cenote_retire_connections(cenote_pool *pool,
                                        uint64_t now);

// The process is about to be frozen: each connection that no request uses or waits for is closed, and the minimum
// pauses as after an establishment that failed.
cenote_status cenote_release_idle(cenote_pool *pool,
                                  uint64_t now);

// The server can be used.
cenote_status cenote_ready(cenote_pool *pool, uint64_t now);

// Every connection so far may be broken. Not 0 for `interrupt` also interrupts those in use. `service` is null, but
// behind a load balancer it is the 12 bytes of the service whose connections may be broken.
cenote_status cenote_clear(cenote_pool *pool,
                           uint64_t now,
                           const cenote_cause *cause,
                           uint32_t interrupt,
                           const uint8_t *service);

// The pool is closed, for good.
cenote_status cenote_close(cenote_pool *pool, uint64_t now);

// The deadline of `cenote_next_deadline` is due. Early, late or twice does no harm.
cenote_status cenote_timer(cenote_pool *pool, uint64_t now);

// This process is a child of the one that made the connections. Close the sockets that the actions return
// without sending a byte, and wake no waiter.
cenote_status cenote_reset_after_fork(cenote_pool *pool,
                                      uint64_t now);

// The options change while the pool runs; those that are not set return to their defaults. Load-balanced mode
// cannot change.
cenote_status cenote_set_options(cenote_pool *pool,
                                 uint64_t now,
                                 const cenote_options *options);

// Pulls the next action; its kind is `CENOTE_ACTION_KIND_NONE` if there is none. Its texts can be had until the
// next one is pulled.
cenote_status cenote_next_action(cenote_pool *pool,
                                 cenote_action *action);

// The cause of the error in the action that was pulled last, as a reference of the caller: to be released.
cenote_status cenote_action_cause(cenote_pool *pool,
                                  cenote_cause **cause);

// A text of the action that was pulled last: `kind` is a `cenote_text_kind`. An action without such a text is
// `CENOTE_STATUS_NOTHING`. For the rest see `cenote_last_error`.
cenote_status cenote_action_text(cenote_pool *pool,
                                 uint32_t kind,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *length);

// Makes a cause, which is the caller's only reference to it. All texts are copied.
cenote_status cenote_cause_new(const cenote_cause_options *options, cenote_cause **cause);

// Adds a reference.
cenote_status cenote_cause_retain(const cenote_cause *cause);

// Gives a reference back. One too many is `CENOTE_STATUS_BAD_HANDLE`.
cenote_status cenote_cause_release(const cenote_cause *cause);

// The `payload` that the cause was made with.
cenote_status cenote_cause_payload(const cenote_cause *cause, uintptr_t *payload);

// How many places have the cause, besides the caller's reference: pools, actions that were not pulled yet,
// and other handles. A driver that keeps an object of its own for each cause can free it at 0.
cenote_status cenote_cause_users(const cenote_cause *cause,
                                 size_t *users);

// A text of a cause: `CENOTE_TEXT_KIND_MESSAGE`, `CENOTE_TEXT_KIND_LABELS` or
// `CENOTE_TEXT_KIND_LABELS_RETRY_WRITES`.
cenote_status cenote_cause_text(const cenote_cause *cause,
                                uint32_t kind,
                                char *buffer,
                                size_t capacity,
                                size_t *length);

// Judges the failure of an application's connection, in use or being established, before it is fed to the pool.
// `process_id` and `counter` are the topology version in the server's description; `process_id` is null if there is
// none. An error of an older generation changes nothing.
cenote_status cenote_verdict(const cenote_pool *pool,
                             uint64_t connection,
                             const cenote_cause *cause,
                             const uint8_t *process_id,
                             int64_t counter,
                             cenote_verdict_info *verdict);

// Judges a failed check of the server by its monitor. Clear the pool with it, in the same critical section as the
// description of the server.
cenote_status cenote_monitor_verdict(const cenote_cause *cause,
                                     cenote_verdict_info *verdict);

// Tells the counts, the state and the generation. Takes constant time.
cenote_status cenote_snapshot(const cenote_pool *pool, cenote_snapshot_info *snapshot);

// Tells about one connection; `CENOTE_STATUS_NOTHING` if it is closed, or never was. Takes time in proportion to the
// number of connections; for generations alone there is `cenote_generation_of`.
cenote_status cenote_connection(const cenote_pool *pool,
                                uint64_t connection,
                                cenote_connection_info *info);

// The pool's generation; with a service, that of the service. `CENOTE_STATUS_NOTHING` if no connection belongs to it.
cenote_status cenote_generation(const cenote_pool *pool,
                                const uint8_t *service,
                                uint64_t *generation);

// How often a service was cleared, for `cenote_handshaken_late`.
cenote_status cenote_service_clears(const cenote_pool *pool, uint64_t *clears);

// The generation of a connection. `CENOTE_STATUS_NOTHING` if it is closed, or never was. Takes constant time.
cenote_status cenote_generation_of(const cenote_pool *pool,
                                   uint64_t connection,
                                   uint64_t *generation);

// The connection that a check-out would get now, and its payload; `CENOTE_STATUS_NOTHING` if it would get a new one,
// wait or fail. The driver looks at its socket first, and calls `cenote_idle_closed_by_peer` if the peer has closed
// it. `payload` may be null. Takes constant time.
cenote_status cenote_next_available(cenote_pool *pool,
                                    uint64_t *connection,
                                    uintptr_t *payload);

// Whether as many connections are established as `minPoolSize` wants, for a driver that waits until its pools are warm. Only
// an input changes it; in a pool that is paused or closed no connection is coming. Takes constant time. Writes 0 or 1.
cenote_status cenote_is_filled(const cenote_pool *pool,
                               uint32_t *filled);

// When to call `cenote_timer` next; `CENOTE_NEVER` if there is nothing to wait for. To be asked again after every
// input. `reason` gets a `cenote_deadline_reason`, and may be null.
cenote_status cenote_next_deadline(const cenote_pool *pool,
                                   uint64_t *deadline,
                                   uint32_t *reason);

// Whether a timer may stay set to `armed`, a time (or `CENOTE_NEVER`) that was no later than the deadline before the last input, because that
// input was a check-out or a check-in. If not, ask `cenote_next_deadline`, which takes several times as long. Writes 0 or 1.
cenote_status cenote_keeps_deadline(const cenote_pool *pool,
                                    uint64_t armed,
                                    uint32_t *kept);

// Whether the next input needs the present time. If not, and the pool makes no events, the input has no deadline
// and is not `cenote_set_options`, the time of the last input may be given again. Writes 0 or 1.
cenote_status cenote_needs_now(const cenote_pool *pool,
                               uint32_t *needed);

// What the recordings that begin from now on say: `origin`, the milliseconds since 1970 at time 0 of the pool (0: unknown),
// so that times can be shown as those of a clock; and the name of the `program` (null: this library's).
cenote_status cenote_trace_describe(cenote_pool *pool,
                                    int64_t origin,
                                    const char *program);

// Begins to record every input of the pool, and with `actions` not 0 every action, from its present state on. Read the
// trace now and then (`cenote_trace_read`): the memory for it is bounded, and inputs that it has no room for are
// only counted. A trace has no payload and no waiter; of causes it has stage, kind, labels and text.
// `CENOTE_STATUS_NOTHING` if it is recording already.
cenote_status cenote_trace_start(cenote_pool *pool,
                                 uint32_t actions);

// Ends the recording. What was not read yet can still be read.
cenote_status cenote_trace_stop(cenote_pool *pool);

// The establishment of a connection has come to a `cenote_cause_stage`: for the trace, which tells then where the time went,
// and where one hangs. Does nothing while the pool is not recorded.
cenote_status cenote_enter_stage(cenote_pool *pool,
                                 uint64_t now,
                                 uint64_t connection,
                                 uint32_t stage);

// Takes the next bytes of the trace, at most `capacity`; `length` gets their number, which is 0 if there are none at
// present. Appended to one file, they are the trace.
cenote_status cenote_trace_read(cenote_pool *pool,
                                uint8_t *buffer,
                                size_t capacity,
                                size_t *length);

// Keeps the latest inputs from now on, in `bytes` bytes of memory (a flight recorder): from 1,024 to 2^30, beside two copies of the pool's
// state. What one has kept before is lost.
cenote_status cenote_flight_start(cenote_pool *pool,
                                  size_t bytes);

// Writes what the flight recorder has kept, as a whole trace; it goes on. With less room than that needs, nothing is written, and the call
// returns `CENOTE_STATUS_TRUNCATED`; `length` gets the number of bytes in any case. `CENOTE_STATUS_NOTHING` if there is no flight recorder.
cenote_status cenote_flight_read(cenote_pool *pool,
                                 uint8_t *buffer,
                                 size_t capacity,
                                 size_t *length);

// A number that is the same for two pools in the same state, whatever their payloads: to compare a replay with the
// fingerprints in a trace (`fp`). It differs between versions of the library. Takes time in proportion to the pool's
// size.
cenote_status cenote_fingerprint(const cenote_pool *pool,
                                 uint64_t *fingerprint);

// Makes a client of the deployment that a connection string names, and begins to discover it. The pools of its servers are
// made by the driver, with the options that `cenote_options_from_uri` reads from the same string.
//
// `driver_name` and `driver_version` are told to the servers, and may be null. A string that begins with `mongodb+srv://` is
// refused: the library looks nothing up. Times are nanoseconds, as for pools.
cenote_status cenote_client_new(const char *uri,
                                const char *driver_name,
                                const char *driver_version,
                                uint64_t now,
                                cenote_client **client);

// Frees a client, whatever its state. Close it, and perform the actions, to get all waiters back and all sockets and pools
// closed.
cenote_status cenote_client_free(cenote_client *client);

// Pulls the next action of a client; its kind is `CENOTE_CLIENT_ACTION_KIND_NONE` if there is none. Its texts, bytes and cause
// can be had until the next one is pulled.
cenote_status cenote_client_next_action(cenote_client *client,
                                        cenote_client_action *action);

// The bytes of the action `CENOTE_CLIENT_ACTION_KIND_SEND` that was pulled last. With less room than they need, nothing is
// written, and the call returns `CENOTE_STATUS_TRUNCATED`; `length` gets their number in any case.
cenote_status cenote_client_action_bytes(cenote_client *client,
                                         uint8_t *buffer,
                                         size_t capacity,
                                         size_t *length);

// The cause in the action that was pulled last, as a reference of the caller: to be released.
cenote_status cenote_client_action_cause(cenote_client *client, cenote_cause **cause);

// A text of the action that was pulled last; `kind` is a `cenote_text_kind`. `CENOTE_TEXT_KIND_ADDRESS` is where its server is,
// also of an event about one; `CENOTE_TEXT_KIND_MESSAGE` why there is no server, a cause, or what is known since a description has
// changed. Events have `CENOTE_TEXT_KIND_EVENT`, and all but a change of one server `CENOTE_TEXT_KIND_LOG` and
// `CENOTE_TEXT_KIND_LOG_JSON`. Without such a text the call returns `CENOTE_STATUS_NOTHING`. For the rest see
// `cenote_last_error`.
cenote_status cenote_client_action_text(cenote_client *client,
                                        uint32_t kind,
                                        char *buffer,
                                        size_t capacity,
                                        size_t *length);

// A monitoring socket is connected, TLS included. The library says hello: `CENOTE_CLIENT_ACTION_KIND_SEND` follows. Does nothing if the socket was closed meanwhile.
cenote_status cenote_client_connected(cenote_client *client,
                                      uint64_t now,
                                      uint64_t server,
                                      uint64_t socket);

// Bytes of a monitoring socket, in any cut, as TLS has decrypted them. What is no reply to the command that was sent is a
// failure of the socket. Does nothing if the socket was closed meanwhile.
//
// A server may send without a pause. Read from each socket at most some 64 KB in a turn, and then the others.
cenote_status cenote_client_received(cenote_client *client,
                                     uint64_t now,
                                     uint64_t server,
                                     uint64_t socket,
                                     const uint8_t *data,
                                     size_t length);

// A monitoring socket could not be connected, or has failed since: the end of its stream is a failure. Does nothing if it was
// closed meanwhile. `CENOTE_CLIENT_ACTION_KIND_CLOSE_SOCKET` follows.
cenote_status cenote_client_socket_failed(cenote_client *client,
                                          uint64_t now,
                                          uint64_t server,
                                          uint64_t socket,
                                          const cenote_cause *cause);

// A connection of a server's pool has failed, while it was established or in use. Perform the actions that follow, which may
// clear the pool, and tell the pool and the caller after that. Replaces `cenote_verdict`.
cenote_status cenote_client_connection_failed(cenote_client *client,
                                              uint64_t now,
                                              uint64_t server,
                                              const cenote_pool *pool,
                                              uint64_t connection,
                                              const cenote_cause *cause);

// An operation wants a server. `request` is greater than every one before it in this client; `waiter` comes back with the
// outcome, in exactly one action `CENOTE_CLIENT_ACTION_KIND_DELIVER`.
//
// `selector` is a `cenote_server_selector`. `deadline` is when the caller gives up; `CENOTE_NEVER` is after
// `serverSelectionTimeoutMS`, and one that is not after `now` asks for what is known. The servers whose numbers are in
// `avoided`, an array of `count`, are chosen only where no other fits, such as one where the operation has just failed;
// `avoided` may be null if `count` is 0. `draw` is a random number, by which two of the servers that fit are drawn.
cenote_status cenote_client_select(cenote_client *client,
                                   uint64_t now,
                                   uint64_t request,
                                   uintptr_t waiter,
                                   uint32_t selector,
                                   uint64_t deadline,
                                   const uint64_t *avoided,
                                   size_t count,
                                   uint64_t draw);

// A caller does not wait for its server any more. Its waiter does not come back. Does nothing if the request has its
// outcome.
cenote_status cenote_client_cancel(cenote_client *client,
                                   uint64_t now,
                                   uint64_t request);

// All servers are to be checked as soon as the minimum of 500 ms between two checks allows.
cenote_status cenote_client_request_checks(cenote_client *client, uint64_t now);

// The client is closed, for good: callers that wait get an error, then monitoring sockets and pools are closed.
cenote_status cenote_client_close(cenote_client *client,
                                  uint64_t now);

// The `cenote_client_next_deadline` is due. Early, late or twice does no harm.
cenote_status cenote_client_timer(cenote_client *client, uint64_t now);

// When to call `cenote_client_timer` next; `CENOTE_NEVER` if there is nothing to wait for. To be asked again after every
// input.
cenote_status cenote_client_next_deadline(const cenote_client *client,
                                          uint64_t *deadline);

// Tells about a server; `CENOTE_STATUS_NOTHING` if it was removed, or never was one.
cenote_status cenote_client_server(const cenote_client *client,
                                   uint64_t server,
                                   cenote_server_info *info);

// Where a server is: `host:port`, or the path of a UNIX domain socket. `CENOTE_STATUS_NOTHING` if it was removed, or never was one.
cenote_status cenote_client_address(const cenote_client *client,
                                    uint64_t server,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *length);

// What is known of the deployment, as one line.
cenote_status cenote_client_description(const cenote_client *client,
                                        char *buffer,
                                        size_t capacity,
                                        size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CENOTE_H */
