"""What both pools for PyMongo share: all but waiting, connecting and closing sockets."""

import os
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bson import ObjectId
from pymongo import _csot
from pymongo._telemetry import _CmapTelemetry
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from pymongo.helpers_shared import _get_timeout_details
from pymongo.lock import _create_lock
from pymongo.logger import _CONNECTION_LOGGER, _is_debug_enabled
from pymongo.monitoring import ConnectionCheckOutFailedReason, ConnectionClosedReason
from pymongo.pool_options import PoolOptions
from pymongo.pool_shared import (
    PoolState,
    _AgnosticBasePool,
    _CancellationContext,
    _PoolClosedError,
    _PoolGeneration,
    _raise_connection_failure,
)
from pymongo.synchronous.pool import Connection

from ._abi import (
    ActionKind,
    CauseKind,
    CauseStage,
    CheckOutError,
    ClosedReason,
    EventKind,
    FailedReason,
    PoolStatus,
    Purpose,
    SnapshotInfo,
    Status,
)
from ._pool import NEVER, Action, Cause, Error, Options
from ._pool import Pool as _Machine
from ._recording import Recording

if TYPE_CHECKING:
    import asyncio
    import threading

    from pymongo.typings import _Address

# How many forks lie between this process and the one that imported this module. It is looked at for each operation, where
# os.getpid is a system call. A fork by C code that does not call PyOS_AfterFork_Child is not seen.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # Windows has no forks.
    os.register_at_fork(after_in_child=_count_fork)

# The usual way compares with it: a name is faster than an attribute.
_DELIVER = ActionKind.DELIVER
_CLOSED = Cause("the connection was closed after an error")
_CLEARED = Cause("PyMongo cleared the pool")
_STATES = {PoolStatus.PAUSED: PoolState.PAUSED, PoolStatus.READY: PoolState.READY, PoolStatus.CLOSED: PoolState.CLOSED}
# The texts are PyMongo's.
_CLOSED_REASONS: dict[object, str] = {
    ClosedReason.ERROR: ConnectionClosedReason.ERROR,
    ClosedReason.STALE: ConnectionClosedReason.STALE,
    ClosedReason.IDLE: ConnectionClosedReason.IDLE,
    ClosedReason.POOL_CLOSED: ConnectionClosedReason.POOL_CLOSED,
}
_FAILED_REASONS: dict[object, tuple[str, str]] = {
    FailedReason.POOL_CLOSED: ("Connection pool was closed", ConnectionCheckOutFailedReason.POOL_CLOSED),
    FailedReason.TIMEOUT: (
        "Wait queue timeout elapsed without a connection becoming available",
        ConnectionCheckOutFailedReason.TIMEOUT,
    ),
    FailedReason.CONNECTION_ERROR: (
        "An error occurred while trying to establish a new connection",
        ConnectionCheckOutFailedReason.CONN_ERROR,
    ),
}


C = TypeVar("C", bound=Connection | AsyncConnection)
W = TypeVar("W", bound="Waiter")


class Establishment:
    """A connection that is being made. The code in its `with` block makes it."""

    def __init__(self, connection: int, generation: int) -> None:
        self.connection = connection
        self.generation = generation
        self.context: _CancellationContext | None = None
        self.task: "asyncio.Task[Any] | None" = None
        self.is_aborted = False

    def __enter__(self) -> None:
        self._token = _present.set(self)

    def __exit__(self, *error: object) -> None:
        _present.reset(self._token)

    def abort(self) -> None:
        self.is_aborted = True
        if self.context is not None:
            self.context.cancel()
        if self.task is not None:
            self.task.cancel()


# What the present thread or task establishes.
_present: ContextVar[Establishment | None] = ContextVar("_present", default=None)


class Waiter:
    """A caller that wants a connection."""

    __slots__ = ("deadline", "establishment", "handler", "is_gone", "outcome", "request", "was_closed")

    def __init__(self, handler: Any) -> None:
        # PyMongo's context of the operation, which learns what a new connection is like.
        self.handler = handler
        self.request = 0
        self.deadline = NEVER
        # Whether the pool was closed before.
        self.was_closed = False
        self.outcome: Any = None
        # The connection that is made for this caller.
        self.establishment: Establishment | None = None
        self.is_gone = False

    def notify(self) -> None:
        """Wakes the caller, which may be awake."""
        raise NotImplementedError


class _Generations(_PoolGeneration):
    """The generations that PyMongo's SDAM compares."""

    def __init__(self, machine: _Machine, lock: "threading.Lock") -> None:
        super().__init__()
        self._machine = machine
        self._lock = lock

    def get_overall(self) -> int:
        establishment = _present.get()
        return self._generation if establishment is None else establishment.generation

    def get(self, service_id: ObjectId | None) -> int:
        if service_id is None:
            return self.get_overall()
        with self._lock:
            # A new connection asks when hello is done, which is when it takes the generation of its service.
            if (establishment := _present.get()) is not None:
                self._machine.handshaken(time.monotonic_ns(), establishment.connection, service_id.binary)
            return self._machine.generation(service_id.binary) or 0

    def cleared(self) -> None:
        self._generation = self._machine.generation() or 0


class _Contexts(set[_CancellationContext]):
    """PyMongo adds the context of each connection that it begins to make: that of the present thread or task."""

    def add(self, context: _CancellationContext) -> None:
        if (establishment := _present.get()) is not None:
            establishment.context = context
            if establishment.is_aborted:
                context.cancel()


def _busy(snapshot: SnapshotInfo) -> int:
    """Check-outs that have a connection, or make theirs."""
    return snapshot.in_use + snapshot.owners


def _derived(get: Callable[["DecidedPool[Any, Any]"], Any]) -> Any:
    """A field of PyMongo's pool that the machine knows: what PyMongo's code assigns is ignored."""
    return property(get, lambda pool, value: None)


class DecidedPool(_AgnosticBasePool[C], Generic[C, W]):
    """A pool of PyMongo's connections that Cenote decides for. A derived class waits, connects and closes sockets."""

    # Where pools of this class record what happens to them.
    _folder: Path | None = None
    # CMAP's number of the connection that the present thread or task makes.
    next_connection_id = _derived(lambda pool: it.connection if (it := _present.get()) else 0)
    conns = _derived(lambda pool: [conn for conn in pool._connections.copy().values() if not conn.active])
    state = _derived(lambda pool: _STATES[pool._snapshot().status])
    requests = active_sockets = _derived(lambda pool: _busy(pool._snapshot()))
    operation_count = _derived(lambda pool: _busy(snapshot := pool._snapshot()) + snapshot.waiting)
    _pending = _derived(lambda pool: pool._snapshot().pending)
    ncursors = _derived(lambda pool: pool._snapshot().in_use_by_cursors)
    ntxns = _derived(lambda pool: pool._snapshot().in_use_by_transactions)

    def __init__(
        self,
        address: "_Address",
        options: PoolOptions,
        is_sdam: bool = False,
        client_id: ObjectId | None = None,
    ) -> None:
        # The machine names the server in its texts, without the zone of an IPv6 address.
        host, port = address[0].partition("%")[0], address[1]
        name = address[0] if port is None else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        machine_options = Options(
            max_pool_size=int(options.max_pool_size or 0),
            min_pool_size=options.min_pool_size,
            max_idle_time=round((options.max_idle_time_seconds or 0) * 1e9),
            max_connecting=options.max_connecting,
            wait_queue_timeout=round((options.wait_queue_timeout or 0) * 1e9),
            load_balanced=bool(options.load_balanced),
        )
        # Taken for each call of the machine. PyMongo's own lock is one of threads or of tasks.
        self._guard = _create_lock()
        self._machine = _Machine(name, machine_options, time.monotonic_ns(), is_ready=not options.pause_enabled)
        self._recording = Recording.begin(self._machine, self._folder) if self._folder and not is_sdam else None
        self._connections: dict[int, C] = {}
        self._establishments: dict[int, Establishment] = {}
        self._waiters: dict[int, W] = {}
        self._last_request = 0
        # Actions to perform, in their order; one thread at a time performs them.
        self._queue: deque[Action] = deque()
        self._is_performing = False
        self._is_closed = False
        self._forks = _forks
        # When the connection that is available was returned, if none was checked out since; otherwise 0.
        self._returned_last = 0
        self._action = Action()
        self._has_events = True
        # Why the minimum could not be kept, with the generation, until PyMongo asks.
        self._failure: tuple[int, BaseException] | None = None
        super().__init__(address, options, is_sdam, client_id)
        # The machine tells the events, and PyMongo's connections tell none.
        self._published = self._telemetry
        self._telemetry = _CmapTelemetry(client_id, address, None, publish=False, log=False)
        self.gen = self._generations = _Generations(self._machine, self._guard)
        self.active_contexts = _Contexts()
        self._feed(lambda now: None)

    # What a derived class does.

    def _start(self, establishment: Establishment, owner: int) -> None:
        """Begins to make a connection, for the request `owner` if that still waits."""
        raise NotImplementedError

    def _close_socket(self, conn: C) -> None:
        raise NotImplementedError

    # What PyMongo asks for.

    def _clear(self, close: bool, pause: bool, service_id: ObjectId | None, interrupt_connections: bool) -> None:
        service = service_id.binary if service_id is not None else None

        def clear(now: int) -> None:
            if self._forks != _forks:
                self._forget_parent(now)
            if close:
                self._is_closed = True
                self._machine.close(now)
                return
            self._machine.clear(now, _CLEARED, interrupt_connections, service)
            if not (pause and self.opts.pause_enabled):
                self._settle()
                self._machine.ready(now)
                # To subscribers it was ready all the time.
                self._queue.extend(it for it in self._machine.actions() if it.event != EventKind.POOL_READY)
            self._generations.cleared()

        self._feed(clear)
        if close:
            self._record(is_over=True)

    def _update_is_writable(self, is_writable: bool | None) -> None:
        self.is_writable = is_writable
        for conn in self.conns:
            conn.update_is_writable(bool(is_writable))

    def _maintain(self, reference_generation: int) -> None:
        """PyMongo calls it every second or so, and shows what it raises to its SDAM."""
        self._feed(self._machine.timer)
        self._record()
        failure, self._failure = self._failure, None
        if failure is not None and failure[0] == reference_generation:
            raise failure[1]

    def _ask(self, waiter: W) -> None:
        """A caller wants a connection, and may have its outcome at once."""
        if self._forks != _forks:
            self._clear(close=False, pause=False, service_id=None, interrupt_connections=False)
        deadline, waiter.deadline = self._deadlines()
        with self._guard:
            self._begin()
            now = time.monotonic_ns()
            self._close_perished(now)
            request = waiter.request = self._last_request = self._last_request + 1
            self._waiters[request] = waiter
            self._machine.check_out(now, request, request, deadline)
            self._settle()
            waiter.was_closed = self._is_closed

    def _outcome(self, waiter: W, checkout_started_time: float) -> C:
        outcome = waiter.outcome
        if not isinstance(outcome, CheckOutError):
            return outcome  # type: ignore[no-any-return]
        if waiter.was_closed:
            raise _PoolClosedError("Attempted to check out a connection from closed connection pool")
        if outcome is CheckOutError.WAIT_QUEUE_TIMEOUT:
            self._raise_wait_queue_timeout(checkout_started_time)
        paused = AutoReconnect("connection pool paused")
        _raise_connection_failure(self.address, paused, timeout_details=_get_timeout_details(self.opts))

    def _give_up(self, waiter: W) -> None:
        """A caller cancelled, or a subscriber of its events raised. What it was given returns to the pool."""

        def cancel(now: int) -> None:
            waiter.is_gone = True
            if waiter.outcome is None or isinstance(waiter.outcome, CheckOutError):
                self._machine.cancel(now, waiter.request)
            else:
                self._return_undelivered(now, waiter.outcome)

        self._feed(cancel)

    def _check_in(self, conn: C) -> None:
        conn.active = conn.pinned_txn = conn.pinned_cursor = False
        self._pinned_sockets.discard(conn)
        if self._forks != _forks:
            self._clear(close=False, pause=False, service_id=None, interrupt_connections=False)
            return
        conn.update_last_checkin_time()
        conn.update_is_writable(bool(self.is_writable))
        # As `_feed`, for speed.
        with self._guard:
            self._begin()
            self._return(time.monotonic_ns(), conn)
            self._settle()
        if self._queue and not self._is_performing:
            self._perform()

    def _must_return(self, conn: C, error: BaseException | None) -> bool:
        """Whether the end of a check-out's `with` block returns the connection. Otherwise its session or cursor does."""
        if not (conn.pinned_txn or conn.pinned_cursor):
            return bool(conn.active)
        if error is None:
            self._pinned_sockets.add(conn)
            purpose = Purpose.TRANSACTION if conn.pinned_txn else Purpose.CURSOR
            self._feed(lambda now: self._machine.repurpose(now, conn.id, purpose))
        return False

    # What the machine is told.

    def _feed(self, inputs: Callable[[int], None]) -> None:
        """Tells the machine what happened, under the lock, and performs what follows."""
        with self._guard:
            self._begin()
            inputs(time.monotonic_ns())
            self._settle()
        if self._queue and not self._is_performing:
            self._perform()

    def _record(self, is_over: bool = False) -> None:
        """What happened since goes into the file: here, in PyMongo's maintenance or `close`, and without the machine's lock."""
        recording = self._recording
        if recording is None:
            return
        # Another thread may be about to end it.
        with recording.lock:
            with self._guard:
                part = recording.take(is_over)
            recording.write(part)

    def _begin(self) -> None:
        """The logger's level can change at any time. The caller holds the lock."""
        published = self._published
        wanted = published._should_publish or (published._log and _is_debug_enabled(_CONNECTION_LOGGER))
        if wanted != self._has_events:
            self._has_events = wanted
            self._machine.set_events(wanted)

    def _deadlines(self) -> tuple[int, int]:
        """That of the operation, and that of the wait, which `waitQueueTimeoutMS` may end: the machine knows it."""
        if _csot.get_timeout():
            return (int(_csot.get_deadline() * 1e9),) * 2
        if self.opts.wait_queue_timeout:
            return NEVER, time.monotonic_ns() + int(self.opts.wait_queue_timeout * 1e9)
        return NEVER, NEVER

    def _close_perished(self, now: int) -> None:
        """Looks at the socket that a check-out would get, if nothing has for a while."""
        interval = self._check_interval_seconds
        if interval is None or now - self._returned_last < interval * 1_000_000_000:
            # It is the next one to be used.
            return
        while (found := self._machine.next_available()) is not None:
            conn = self._connections[found[0]]
            if interval and conn.idle_time_seconds() <= interval or not conn.conn_closed():
                return
            self._machine.idle_closed_by_peer(now, conn.id, _CLOSED)

    def _return(self, now: int, conn: C) -> None:
        # A connection of before a fork, or one that was returned already, is not of this pool.
        if self._connections.get(conn.id) is not conn:
            self._close_socket(conn)
        elif conn.closed:
            self._machine.check_in_errored(now, conn.id, conn.id, _CLOSED)
        else:
            self._machine.check_in(now, conn.id, conn.id)
            self._returned_last = now

    def _return_undelivered(self, now: int, conn: C) -> None:
        conn.active = False
        self._return(now, conn)

    def _established(self, establishment: Establishment, conn: C) -> None:
        number = establishment.connection
        self._establishments.pop(number, None)

        def established(now: int) -> None:
            self._connections[number] = conn
            self._machine.established(now, number, number)

        self._feed(established)

    def _establish_failed(self, establishment: Establishment, error: BaseException) -> None:
        self._establishments.pop(establishment.connection, None)
        cause = _cause(error)
        self._feed(lambda now: self._machine.establish_failed(now, establishment.connection, cause))

    def _forget_parent(self, now: int) -> None:
        """This process is a child. The sockets are the parent's: closing them here sends nothing."""
        self.pid = os.getpid()
        self._forks = _forks
        # The file is the parent's.
        self._recording = None
        self._queue.clear()
        self._is_performing = False
        self._waiters.clear()
        self._establishments.clear()
        self._machine.set_events(False)
        self._machine.reset_after_fork(now)
        for _ in self._machine.actions():
            pass
        self._machine.set_events(self._has_events)
        for conn in self.conns:
            self._close_socket(conn)
        self._connections.clear()

    # What the machine wants done.

    def _settle(self) -> None:
        """Pulls the actions. The caller holds the lock. The usual one needs no queue."""
        action, queue = self._action, self._queue
        while True:
            self._machine.pull(action)
            kind, remaining = action.kind, action.remaining
            if kind is _DELIVER and not queue and not self._is_performing:
                self._deliver(action)
            elif kind:
                queue.append(action.copy())
            if not remaining:
                break

    def _perform(self) -> None:
        """Performs the actions in their order, without the lock, unless another thread does so."""
        failed: BaseException | None = None
        with self._guard:
            if self._is_performing:
                return
            self._is_performing = True
        has_more = True
        while has_more:
            try:
                has_more = self._perform_next()
            except BaseException as error:  # noqa: BLE001: what comes after it must not be lost.
                failed = failed or error
        if failed is not None:
            raise failed

    def _perform_next(self) -> bool:
        """Performs an action, if there is one. Takes the lock only if it has to: each time can cost two switches of threads."""
        queue = self._queue
        # Nothing else takes from the queue.
        if not queue or queue[0].kind is _DELIVER:
            with self._guard:
                while queue and queue[0].kind is _DELIVER:
                    self._deliver(queue.popleft())
                if not queue:
                    self._is_performing = False
                    return False
        self._perform_one(queue.popleft())
        return True

    def _perform_one(self, action: Action) -> None:
        kind, connection = action.kind, action.connection
        if kind == ActionKind.EMIT_EVENT:
            self._publish(action)
        elif kind == ActionKind.START_ESTABLISH:
            establishment = Establishment(connection, action.generation)
            self._establishments[connection] = establishment
            self._start(establishment, action.owner)
        elif kind == ActionKind.ABORT_ESTABLISH:
            if (aborted := self._establishments.pop(connection, None)) is not None:
                aborted.abort()
        elif kind == ActionKind.CLOSE_SOCKET:
            if (closed := self._connections.pop(connection, None)) is not None:
                self._close_socket(closed)
        elif kind == ActionKind.INTERRUPT:
            if (interrupted := self._connections.get(connection)) is not None:
                interrupted.cancel_context.cancel()

    def _deliver(self, action: Action) -> None:
        """Answers a waiter. The caller holds the lock."""
        waiter = self._waiters.pop(action.waiter)
        if not action.connection:
            waiter.outcome = action.error
        else:
            conn = self._connections[action.connection]
            conn.active = True
            self._returned_last = 0
            waiter.outcome = conn
            if waiter.is_gone:
                self._return_undelivered(time.monotonic_ns(), conn)
                self._settle()
        waiter.notify()

    def _publish(self, action: Action) -> None:
        event, connection, telemetry = action.event, action.connection, self._published
        start = time.monotonic() - action.duration / 1e9
        if event == EventKind.CHECK_OUT_STARTED:
            telemetry.checkout_started()
        elif event == EventKind.CHECKED_OUT:
            telemetry.checkout_succeeded(connection, start)
        elif event == EventKind.CHECKED_IN:
            telemetry.checked_in(connection)
        elif event == EventKind.CHECK_OUT_FAILED:
            telemetry.checkout_failed(*_FAILED_REASONS[action.reason], start)
        elif event == EventKind.CONNECTION_CREATED:
            telemetry.connection_created(connection)
        elif event == EventKind.CONNECTION_READY:
            telemetry.connection_ready(connection, start)
        elif event == EventKind.CONNECTION_CLOSED:
            telemetry.connection_closed(connection, _CLOSED_REASONS[action.reason])
        elif event == EventKind.POOL_READY:
            telemetry.pool_ready()
        elif event == EventKind.POOL_CLEARED:
            service = ObjectId(bytes(action.service)) if action.has_service else None
            telemetry.pool_cleared(service, action.interrupt)
        elif event == EventKind.POOL_CLOSED:
            telemetry.pool_closed()

    def _snapshot(self) -> SnapshotInfo:
        """Without the lock, which the caller may hold: PyMongo reads its fields under it, and without it."""
        while True:
            try:
                return self._machine.snapshot()
            except Error as error:
                # In an interpreter without a lock of its own, another thread can be in a call.
                if error.status is not Status.BUSY:
                    raise


def _cause(error: BaseException) -> Cause:
    """What the machine keeps of an error. The error itself is raised by the caller that waits."""
    text = str(error) or type(error).__name__
    if isinstance(error, OperationFailure):
        return Cause(text, CauseStage.AUTHENTICATION, CauseKind.COMMAND, code=error.code or 0)
    kind = CauseKind.TIMEOUT if isinstance(error, NetworkTimeout) else CauseKind.NETWORK
    return Cause(text, CauseStage.HELLO, kind)
