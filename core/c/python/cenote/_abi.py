"""Numbers, structures and functions of libcenote: cenote.h explains them. Written by make_abi.py."""

# ruff: noqa: E501
import ctypes
from enum import IntEnum
from typing import Any


def _typed(structure: Any) -> Any:
    """Fields that are annotated with an enum have its members as values, not numbers."""
    for name, kind in structure.__annotations__.items():
        if isinstance(kind, type) and issubclass(kind, IntEnum):
            setattr(structure, name, _members(getattr(structure, name), kind))
    return structure


def _members(field: Any, kind: type[IntEnum]) -> property:
    get, members = field.__get__, {int(it): it for it in kind}
    return property(lambda structure: members[get(structure)], field.__set__)


class ActionKind(IntEnum):
    NONE = 0
    START_ESTABLISH = 1
    ABORT_ESTABLISH = 2
    DELIVER = 3
    CLOSE_SOCKET = 4
    INTERRUPT = 5
    REPORT_LEAK = 6
    EMIT_EVENT = 7
    START_DRAIN = 8
    ABORT_DRAIN = 9
    REPORT_UNANSWERED = 10


class CauseKind(IntEnum):
    NETWORK = 0
    TIMEOUT = 1
    NOT_SENT = 2
    COMMAND = 3
    PROTOCOL = 4
    CONFIGURATION = 5
    LOCAL = 6


class CauseStage(IntEnum):
    DNS = 0
    TCP = 1
    PROXY = 2
    TLS_IO = 3
    TLS_CERTIFICATE = 4
    HELLO = 5
    AUTHENTICATION = 6
    OPERATION = 7


class CheckOutError(IntEnum):
    NONE = 0
    POOL_CLOSED = 1
    POOL_CLEARED = 2
    WAIT_QUEUE_TIMEOUT = 3
    ESTABLISH_FAILED = 4
    CANCELLED = 5
    WAIT_QUEUE_FULL = 6
    SHED = 7


class CheckVerdict(IntEnum):
    KEEP = 0
    REQUEST = 1
    CANCEL = 2


class ClientActionKind(IntEnum):
    NONE = 0
    OPEN_POOL = 1
    READY_POOL = 2
    CLEAR_POOL = 3
    CLOSE_POOL = 4
    OPEN_SOCKET = 5
    SEND = 6
    CLOSE_SOCKET = 7
    DELIVER = 8
    EMIT_EVENT = 9
    MIN_ROUND_TRIP = 10


class ClientEventKind(IntEnum):
    NONE = 0
    TOPOLOGY_OPENING = 1
    TOPOLOGY_DESCRIPTION_CHANGED = 2
    TOPOLOGY_CLOSED = 3
    SERVER_OPENING = 4
    SERVER_DESCRIPTION_CHANGED = 5
    SERVER_CLOSED = 6
    HEARTBEAT_STARTED = 7
    HEARTBEAT_SUCCEEDED = 8
    HEARTBEAT_FAILED = 9


class ClosedReason(IntEnum):
    ERROR = 0
    STALE = 1
    IDLE = 2
    POOL_CLOSED = 3


class ConnectionState(IntEnum):
    PENDING = 0
    AVAILABLE = 1
    IN_USE = 2
    PENDING_RESPONSE = 3
    DRAINING = 4


class DeadlineReason(IntEnum):
    NONE = 0
    WAIT_QUEUE_TIMEOUT = 1
    IDLE_TIME = 2
    LIFETIME = 3
    POPULATE = 4
    LEAK_DETECTION = 5
    UNANSWERED = 6
    PENDING_RESPONSE = 7
    STANDING_DELAY = 8
    ESTABLISHMENT = 9


class EventKind(IntEnum):
    NONE = 0
    POOL_CREATED = 1
    POOL_READY = 2
    POOL_CLEARED = 3
    POOL_CLOSED = 4
    CONNECTION_CREATED = 5
    CONNECTION_READY = 6
    CONNECTION_CLOSED = 7
    CHECK_OUT_STARTED = 8
    CHECK_OUT_FAILED = 9
    CHECKED_OUT = 10
    CHECKED_IN = 11
    PENDING_RESPONSE_STARTED = 12
    PENDING_RESPONSE_SUCCEEDED = 13
    PENDING_RESPONSE_FAILED = 14


class FailedReason(IntEnum):
    POOL_CLOSED = 0
    TIMEOUT = 1
    CONNECTION_ERROR = 2


class PoolStatus(IntEnum):
    PAUSED = 0
    READY = 1
    CLOSED = 2


class PoolVerdict(IntEnum):
    KEEP = 0
    CLEAR = 1
    CLEAR_AND_INTERRUPT = 2
    CLEAR_SERVICE = 3


class Purpose(IntEnum):
    OTHER = 0
    CURSOR = 1
    TRANSACTION = 2


class ServerKind(IntEnum):
    UNKNOWN = 0
    STANDALONE = 1
    MONGOS = 2
    RS_PRIMARY = 3
    RS_SECONDARY = 4
    RS_ARBITER = 5
    RS_OTHER = 6
    RS_GHOST = 7
    LOAD_BALANCER = 8


class ServerSelector(IntEnum):
    READ_PREFERENCE = 0
    PRIMARY = 1
    PRIMARY_PREFERRED = 2
    SECONDARY = 3
    SECONDARY_PREFERRED = 4
    NEAREST = 5


class ServerVerdict(IntEnum):
    KEEP = 0
    UNKNOWN = 1
    UNKNOWN_WITH_TOPOLOGY_VERSION = 2


class Status(IntEnum):
    OK = 0
    BAD_POINTER = 1
    BAD_HANDLE = 2
    BUSY = 3
    BAD_SIZE = 4
    BAD_VALUE = 5
    NOT_UTF8 = 6
    BAD_TEXT = 7
    BAD_OPTIONS = 8
    MISUSE = 9
    TRUNCATED = 10
    NOTHING = 11
    FULL = 12
    PANICKED = 13


class TextKind(IntEnum):
    NAME = 0
    MESSAGE = 1
    EXPLANATION = 2
    LABELS = 3
    LABELS_RETRY_WRITES = 4
    EVENT = 5
    REASON = 6
    LOG = 7
    LOG_JSON = 8
    ADDRESS = 9


@_typed
class Options(ctypes.Structure):
    size: int
    reserved: int
    max_pool_size: int
    min_pool_size: int
    max_idle_time: int
    max_connecting: int
    wait_queue_timeout: int
    load_balanced: int
    pause_after_failure: int
    reuse_order: int
    max_lifetime: int
    jitter_seed: int
    leak_detection_threshold: int
    unanswered_threshold: int
    experimental_pending_response: int
    max_log_text: int
    max_wait_queue_size: int
    codel_target: int
    codel_interval: int
    overload_backoff: int
    adaptive_connecting: int
    predictive_min_pool_size: int

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("max_pool_size", ctypes.c_int64),
        ("min_pool_size", ctypes.c_int64),
        ("max_idle_time", ctypes.c_int64),
        ("max_connecting", ctypes.c_int64),
        ("wait_queue_timeout", ctypes.c_int64),
        ("load_balanced", ctypes.c_int64),
        ("pause_after_failure", ctypes.c_int64),
        ("reuse_order", ctypes.c_int64),
        ("max_lifetime", ctypes.c_int64),
        ("jitter_seed", ctypes.c_int64),
        ("leak_detection_threshold", ctypes.c_int64),
        ("unanswered_threshold", ctypes.c_int64),
        ("experimental_pending_response", ctypes.c_int64),
        ("max_log_text", ctypes.c_int64),
        ("max_wait_queue_size", ctypes.c_int64),
        ("codel_target", ctypes.c_int64),
        ("codel_interval", ctypes.c_int64),
        ("overload_backoff", ctypes.c_int64),
        ("adaptive_connecting", ctypes.c_int64),
        ("predictive_min_pool_size", ctypes.c_int64),
    )


@_typed
class Action(ctypes.Structure):
    size: int
    kind: ActionKind
    remaining: int
    event: EventKind
    connection: int
    payload: int
    waiter: int
    deadline: int
    duration: int
    owner: int
    generation: int
    error: CheckOutError
    reason: int
    request_id: int
    service: ctypes.Array[ctypes.c_uint8]
    has_service: bool
    interrupt: bool
    background: bool
    has_cause: bool
    is_retryable: bool
    is_timeout: bool
    reserved: ctypes.Array[ctypes.c_uint8]

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("remaining", ctypes.c_uint32),
        ("event", ctypes.c_uint32),
        ("connection", ctypes.c_uint64),
        ("payload", ctypes.c_size_t),
        ("waiter", ctypes.c_size_t),
        ("deadline", ctypes.c_uint64),
        ("duration", ctypes.c_uint64),
        ("owner", ctypes.c_uint64),
        ("generation", ctypes.c_uint64),
        ("error", ctypes.c_uint32),
        ("reason", ctypes.c_uint32),
        ("request_id", ctypes.c_int32),
        ("service", ctypes.c_uint8 * 12),
        ("has_service", ctypes.c_bool),
        ("interrupt", ctypes.c_bool),
        ("background", ctypes.c_bool),
        ("has_cause", ctypes.c_bool),
        ("is_retryable", ctypes.c_bool),
        ("is_timeout", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 26),
    )


@_typed
class CauseOptions(ctypes.Structure):
    size: int
    stage: CauseStage
    kind: CauseKind
    has_code: int
    code: int
    is_write_concern_error: int
    after: int
    text: bytes | None
    code_name: bytes | None
    labels: bytes | None
    payload: int
    has_topology_version: int
    process_id: ctypes.Array[ctypes.c_uint8]
    counter: int

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("stage", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("has_code", ctypes.c_uint32),
        ("code", ctypes.c_int32),
        ("is_write_concern_error", ctypes.c_uint32),
        ("after", ctypes.c_uint64),
        ("text", ctypes.c_char_p),
        ("code_name", ctypes.c_char_p),
        ("labels", ctypes.c_char_p),
        ("payload", ctypes.c_size_t),
        ("has_topology_version", ctypes.c_uint32),
        ("process_id", ctypes.c_uint8 * 12),
        ("counter", ctypes.c_int64),
    )


@_typed
class VerdictInfo(ctypes.Structure):
    size: int
    server: ServerVerdict
    pool: PoolVerdict
    check: CheckVerdict

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("server", ctypes.c_uint32),
        ("pool", ctypes.c_uint32),
        ("check", ctypes.c_uint32),
    )


@_typed
class SnapshotInfo(ctypes.Structure):
    size: int
    status: PoolStatus
    generation: int
    total: int
    available: int
    pending_response: int
    in_use: int
    pending: int
    max_pool_size: int
    min_pool_size: int
    max_connecting: int
    in_use_by_cursors: int
    in_use_by_transactions: int
    in_use_by_others: int
    load_balanced: int
    waiting: int
    owners: int
    connections_created: int
    clock_regressions: int
    actions: int

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("generation", ctypes.c_uint64),
        ("total", ctypes.c_uint32),
        ("available", ctypes.c_uint32),
        ("pending_response", ctypes.c_uint32),
        ("in_use", ctypes.c_uint32),
        ("pending", ctypes.c_uint32),
        ("max_pool_size", ctypes.c_uint32),
        ("min_pool_size", ctypes.c_uint32),
        ("max_connecting", ctypes.c_uint32),
        ("in_use_by_cursors", ctypes.c_uint32),
        ("in_use_by_transactions", ctypes.c_uint32),
        ("in_use_by_others", ctypes.c_uint32),
        ("load_balanced", ctypes.c_uint32),
        ("waiting", ctypes.c_uint64),
        ("owners", ctypes.c_uint64),
        ("connections_created", ctypes.c_uint64),
        ("clock_regressions", ctypes.c_uint64),
        ("actions", ctypes.c_uint64),
    )


@_typed
class ConnectionInfo(ctypes.Structure):
    size: int
    state: ConnectionState
    connection: int
    generation: int
    created: int
    since: int
    service: ctypes.Array[ctypes.c_uint8]
    has_service: bool
    is_stale: bool
    reserved: ctypes.Array[ctypes.c_uint8]

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("connection", ctypes.c_uint64),
        ("generation", ctypes.c_uint64),
        ("created", ctypes.c_uint64),
        ("since", ctypes.c_uint64),
        ("service", ctypes.c_uint8 * 12),
        ("has_service", ctypes.c_bool),
        ("is_stale", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 10),
    )


@_typed
class ClientAction(ctypes.Structure):
    size: int
    kind: ClientActionKind
    remaining: int
    event: ClientEventKind
    server: int
    socket: int
    second: int
    waiter: int
    duration: int
    length: int
    service: ctypes.Array[ctypes.c_uint8]
    has_service: bool
    interrupt: bool
    is_ready: bool
    has_cause: bool
    is_timeout: bool
    reserved: ctypes.Array[ctypes.c_uint8]

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("remaining", ctypes.c_uint32),
        ("event", ctypes.c_uint32),
        ("server", ctypes.c_uint64),
        ("socket", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
        ("waiter", ctypes.c_size_t),
        ("duration", ctypes.c_uint64),
        ("length", ctypes.c_size_t),
        ("service", ctypes.c_uint8 * 12),
        ("has_service", ctypes.c_bool),
        ("interrupt", ctypes.c_bool),
        ("is_ready", ctypes.c_bool),
        ("has_cause", ctypes.c_bool),
        ("is_timeout", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 31),
    )


@_typed
class ServerInfo(ctypes.Structure):
    size: int
    kind: ServerKind
    round_trip: int
    max_wire_version: int
    reserved: ctypes.Array[ctypes.c_uint8]

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("round_trip", ctypes.c_uint64),
        ("max_wire_version", ctypes.c_int32),
        ("reserved", ctypes.c_uint8 * 44),
    )


FUNCTIONS: dict[str, list[Any]] = {
    "cenote_last_error": [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_pool_new": [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_pool_new_ready": [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_pool_free": [ctypes.c_void_p],
    "cenote_set_events": [ctypes.c_void_p, ctypes.c_uint32],
    "cenote_options_from_uri": [ctypes.c_char_p, ctypes.c_void_p],
    "cenote_check_out": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint32],
    "cenote_cancel": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64],
    "cenote_check_in": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t],
    "cenote_check_in_errored": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_check_in_pending_response": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int32, ctypes.c_void_p],
    "cenote_repurpose": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32],
    "cenote_handshaken": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_handshaken_late": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64],
    "cenote_established": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t],
    "cenote_establish_failed": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_idle_closed_by_peer": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_drained": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t],
    "cenote_drain_failed": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_drain_progress": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64],
    "cenote_retire_connections": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_release_idle": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_ready": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_clear": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p],
    "cenote_close": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_timer": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_reset_after_fork": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_set_options": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_next_action": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_action_cause": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_action_text": [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_cause_new": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_cause_retain": [ctypes.c_void_p],
    "cenote_cause_release": [ctypes.c_void_p],
    "cenote_cause_payload": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_cause_users": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_cause_text": [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_verdict": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p],
    "cenote_monitor_verdict": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_snapshot": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_connection": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_generation": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p],
    "cenote_service_clears": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_generation_of": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_next_available": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p],
    "cenote_is_filled": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_next_deadline": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p],
    "cenote_keeps_deadline": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_needs_now": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_trace_describe": [ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p],
    "cenote_trace_start": [ctypes.c_void_p, ctypes.c_uint32],
    "cenote_trace_stop": [ctypes.c_void_p],
    "cenote_enter_stage": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32],
    "cenote_trace_read": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_flight_start": [ctypes.c_void_p, ctypes.c_size_t],
    "cenote_flight_read": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_fingerprint": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_client_new": [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_client_free": [ctypes.c_void_p],
    "cenote_client_next_action": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_client_action_bytes": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_client_action_cause": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_client_action_text": [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_client_connected": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64],
    "cenote_client_received": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t],
    "cenote_client_socket_failed": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_client_connection_failed": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_client_select": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64],
    "cenote_client_cancel": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64],
    "cenote_client_request_checks": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_client_close": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_client_timer": [ctypes.c_void_p, ctypes.c_uint64],
    "cenote_client_next_deadline": [ctypes.c_void_p, ctypes.c_void_p],
    "cenote_client_server": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p],
    "cenote_client_address": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cenote_client_description": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
}
