"""Cenote's pool for PyMongo::

    from cenote.pymongo import Pool

    client = MongoClient(uri, _pool_class=Pool)

Sockets, handshakes, threads, errors, log messages and the monitor are PyMongo's. The decisions are Cenote's: the queue of
check-outs, maxConnecting, clear and generations, minPoolSize, idle connections, pause and ready, close, forks, and the order of
events.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bson import ObjectId
from pymongo import _csot
from pymongo._telemetry import _CmapTelemetry
from pymongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from pymongo.helpers_shared import _get_timeout_details
from pymongo.logger import _CONNECTION_LOGGER, _is_debug_enabled
from pymongo.monitoring import ConnectionCheckOutFailedReason, ConnectionClosedReason
from pymongo.pool_options import PoolOptions
from pymongo.pool_shared import (
    PoolState,
    _CancellationContext,
    _PoolClosedError,
    _PoolGeneration,
    _raise_connection_failure,
)
from pymongo.synchronous.pool import Connection, _PoolCheckout
from pymongo.synchronous.pool import Pool as _PyMongoPool

from ._abi import ActionKind, CauseKind, CauseStage, CheckOutError, EventKind, PoolStatus, Purpose, SnapshotInfo, Status
from ._pool import NEVER, Action, Cause, Error, Options
from ._pool import Pool as _Machine

if TYPE_CHECKING:
    from pymongo.synchronous.mongo_client import _ClientCheckout
    from pymongo.typings import _Address

# Enumerators that the usual way compares: plain numbers are faster.
_DELIVER = int(ActionKind.DELIVER)
_CLOSED = Cause("the connection was closed after an error")
_CLEARED = Cause("PyMongo cleared the pool")
_STATES = {PoolStatus.PAUSED: PoolState.PAUSED, PoolStatus.READY: PoolState.READY, PoolStatus.CLOSED: PoolState.CLOSED}
# By the numbers of `ClosedReason` and `FailedReason`; the texts are PyMongo's.
_CLOSED_REASONS = (
    ConnectionClosedReason.ERROR,
    ConnectionClosedReason.STALE,
    ConnectionClosedReason.IDLE,
    ConnectionClosedReason.POOL_CLOSED,
)
_FAILED_REASONS = (
    ("Connection pool was closed", ConnectionCheckOutFailedReason.POOL_CLOSED),
    (
        "Wait queue timeout elapsed without a connection becoming available",
        ConnectionCheckOutFailedReason.TIMEOUT,
    ),
    ("An error occurred while trying to establish a new connection", ConnectionCheckOutFailedReason.CONN_ERROR),
)


class _Establishment:
    """A connection that is being made."""

    def __init__(self, connection: int, generation: int) -> None:
        self.connection = connection
        self.generation = generation
        self.context: _CancellationContext | None = None
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True
        if self.context is not None:
            self.context.cancel()


class _Waiter:
    """A thread that wants a connection."""

    __slots__ = ("establishment", "is_gone", "outcome", "wake")

    def __init__(self) -> None:
        self.wake = threading.Lock()
        self.wake.acquire()
        self.outcome: Connection | CheckOutError | None = None
        self.establishment: _Establishment | None = None
        self.is_gone = False

    def notify(self) -> None:
        if self.wake.locked():
            self.wake.release()


class _Thread(threading.local):
    """What the present thread establishes."""

    establishment: _Establishment | None = None


_thread = _Thread()


class _Generations(_PoolGeneration):
    """The generations that PyMongo's SDAM compares."""

    def __init__(self, machine: _Machine, lock: threading.Lock) -> None:
        super().__init__()
        self._machine = machine
        self._lock = lock

    def get_overall(self) -> int:
        establishment = _thread.establishment
        return self._generation if establishment is None else establishment.generation

    def get(self, service_id: ObjectId | None) -> int:
        if service_id is None:
            return self.get_overall()
        with self._lock:
            # A new connection asks when hello is done, which is when it takes the generation of its service.
            if (establishment := _thread.establishment) is not None:
                self._machine.handshaken(time.monotonic_ns(), establishment.connection, service_id.binary)
            return self._machine.generation(service_id.binary) or 0

    def cleared(self) -> None:
        self._generation = self._machine.generation() or 0


class _Contexts(set[_CancellationContext]):
    """PyMongo adds the context of each connection that it begins to make: that of the present thread."""

    def add(self, context: _CancellationContext) -> None:
        if (establishment := _thread.establishment) is not None:
            establishment.context = context
            if establishment.is_aborted:
                context.cancel()


class _Checkout(_PoolCheckout):
    """A check-out as a context manager."""

    __slots__ = ()
    _pool: "Pool"

    def __enter__(self) -> Connection:
        self._conn = self._pool._get_conn(0.0, self._handler)
        return self._conn

    def __exit__(self, *error: Any) -> None:
        conn = self._conn
        if conn is None:
            return
        if not (conn.pinned_txn or conn.pinned_cursor):
            if conn.active:
                self._pool.checkin(conn)
        elif error[0] is None:
            # From now on its session or cursor returns it.
            self._pool._pinned(conn)


def _busy(snapshot: SnapshotInfo) -> int:
    """Check-outs that have a connection, or make theirs."""
    return snapshot.in_use + snapshot.owners


def _derived(get: Callable[["Pool"], Any]) -> Any:
    """A field of PyMongo's pool that the machine knows: what PyMongo's code assigns is ignored."""
    return property(get, lambda pool, value: None)


class Pool(_PyMongoPool):
    """A pool of PyMongo's connections that Cenote decides for."""

    # CMAP's number of the connection that the present thread makes.
    next_connection_id = _derived(lambda pool: _thread.establishment.connection if _thread.establishment else 0)
    conns = _derived(lambda pool: [conn for conn in pool._connections.copy().values() if not conn.active])
    state = _derived(lambda pool: _STATES[PoolStatus(pool._snapshot().status)])
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
            load_balanced=bool(options.load_balanced),
        )
        self._machine = _Machine(name, machine_options, time.monotonic_ns(), is_ready=not options.pause_enabled)
        self._connections: dict[int, Connection] = {}
        self._establishments: dict[int, _Establishment] = {}
        self._waiters: dict[int, _Waiter] = {}
        self._last_request = 0
        # Actions to perform, in their order; one thread at a time performs them.
        self._queue: deque[Action] = deque()
        self._is_performing = False
        self._is_closed = False
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
        self.gen = self._generations = _Generations(self._machine, self.lock)
        self.active_contexts = _Contexts()
        self._feed(lambda now: None)

    # What PyMongo asks for.

    def ready(self) -> None:
        self._feed(self._machine.ready)

    def _reset(
        self,
        close: bool,
        pause: bool = True,
        service_id: ObjectId | None = None,
        interrupt_connections: bool = False,
    ) -> None:
        service = service_id.binary if service_id is not None else None

        def reset(now: int) -> None:
            if self.pid != os.getpid():
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

        self._feed(reset)

    def update_is_writable(self, is_writable: bool | None) -> None:
        self.is_writable = is_writable
        for conn in self.conns:
            conn.update_is_writable(bool(is_writable))

    def remove_stale_sockets(self, reference_generation: int) -> None:
        """PyMongo calls it every second or so, and shows what it raises to its SDAM."""
        self._feed(self._machine.timer)
        failure, self._failure = self._failure, None
        if failure is not None and failure[0] == reference_generation:
            raise failure[1]

    def checkout(self, handler: "_ClientCheckout | None" = None) -> _PoolCheckout:
        return _Checkout(self, handler)

    def checkin(self, conn: Connection) -> None:
        conn.active = conn.pinned_txn = conn.pinned_cursor = False
        self._pinned_sockets.discard(conn)
        if self.pid != os.getpid():
            self.reset_without_pause()
            return
        conn.update_last_checkin_time()
        conn.update_is_writable(bool(self.is_writable))
        # As `_feed`, for speed.
        with self.lock:
            self._begin()
            self._return(time.monotonic_ns(), conn)
            self._settle()
        if self._queue:
            self._perform()

    def _get_conn(self, checkout_started_time: float, handler: "_ClientCheckout | None" = None) -> Connection:
        if self.pid != os.getpid():
            self.reset_without_pause()
        waiter = _Waiter()
        deadline = self._deadline()
        with self.lock:
            self._begin()
            now = time.monotonic_ns()
            self._close_perished(now)
            request = self._last_request = self._last_request + 1
            self._waiters[request] = waiter
            self._machine.check_out(now, request, request, deadline)
            self._settle()
            was_closed = self._is_closed
        try:
            if self._queue:
                self._perform()
            if waiter.outcome is None or waiter.establishment is not None:
                self._wait(waiter, deadline, handler)
        except BaseException:
            self._give_up(request, waiter)
            raise
        if isinstance(waiter.outcome, Connection):
            return waiter.outcome
        if was_closed:
            raise _PoolClosedError("Attempted to check out a connection from closed connection pool")
        if waiter.outcome is CheckOutError.WAIT_QUEUE_TIMEOUT:
            self._raise_wait_queue_timeout(checkout_started_time)
        paused = AutoReconnect("connection pool paused")
        _raise_connection_failure(self.address, paused, timeout_details=_get_timeout_details(self.opts))

    # What the machine is told.

    def _feed(self, inputs: Callable[[int], None]) -> None:
        """Tells the machine what happened, under the lock, and performs what follows."""
        with self.lock:
            self._begin()
            inputs(time.monotonic_ns())
            self._settle()
        if self._queue:
            self._perform()

    def _begin(self) -> None:
        """The logger's level can change at any time. The caller holds the lock."""
        published = self._published
        wanted = published._should_publish or (published._log and _is_debug_enabled(_CONNECTION_LOGGER))
        if wanted != self._has_events:
            self._has_events = wanted
            self._machine.set_events(wanted)

    def _deadline(self) -> int:
        if _csot.get_timeout():
            return int(_csot.get_deadline() * 1e9)
        if self.opts.wait_queue_timeout:
            return time.monotonic_ns() + int(self.opts.wait_queue_timeout * 1e9)
        return NEVER

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

    def _return(self, now: int, conn: Connection) -> None:
        # A connection of before a fork, or one that was returned already, is not of this pool.
        if self._connections.get(conn.id) is not conn:
            conn.close_conn(None)
        elif conn.closed:
            self._machine.check_in_errored(now, conn.id, conn.id, _CLOSED)
        else:
            self._machine.check_in(now, conn.id, conn.id)
            self._returned_last = now

    def _pinned(self, conn: Connection) -> None:
        self._pinned_sockets.add(conn)
        purpose = Purpose.TRANSACTION if conn.pinned_txn else Purpose.CURSOR
        self._feed(lambda now: self._machine.repurpose(now, conn.id, purpose))

    def _wait(self, waiter: _Waiter, deadline: int, handler: "_ClientCheckout | None") -> None:
        """Waits until the machine answers. Makes the connection of this request, if there is one to make."""
        while waiter.outcome is None:
            establishment, waiter.establishment = waiter.establishment, None
            if establishment is not None:
                self._establish(establishment, handler)
            elif deadline == NEVER:
                waiter.wake.acquire()
            else:
                left = max((deadline - time.monotonic_ns()) / 1e9, 0.0005)
                if not waiter.wake.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
                    self._feed(self._machine.timer)
        if waiter.establishment is not None:
            # The request has ended, but its connection is still wanted.
            self._establish_apart(waiter.establishment)

    def _give_up(self, request: int, waiter: _Waiter) -> None:
        establishment: _Establishment | None = None

        def cancel(now: int) -> None:
            nonlocal establishment
            waiter.is_gone, establishment = True, waiter.establishment
            if isinstance(waiter.outcome, Connection):
                self._return_undelivered(now, waiter.outcome)
            else:
                self._machine.cancel(now, request)

        self._feed(cancel)
        if establishment is not None:
            self._establish_apart(establishment)

    def _return_undelivered(self, now: int, conn: Connection) -> None:
        conn.active = False
        self._return(now, conn)

    def _establish(self, establishment: _Establishment, handler: "_ClientCheckout | None" = None) -> None:
        """Makes a connection as PyMongo does."""
        _thread.establishment = establishment
        try:
            conn = self.connect(handler)
        except BaseException as error:
            cause = _cause(error)
            self._feed(lambda now: self._machine.establish_failed(now, establishment.connection, cause))
            raise
        finally:
            _thread.establishment = None
            self._establishments.pop(establishment.connection, None)

        def established(now: int) -> None:
            self._connections[establishment.connection] = conn
            self._machine.established(now, establishment.connection, establishment.connection)

        self._feed(established)

    def _establish_apart(self, establishment: _Establishment) -> None:
        """Makes a connection that no thread waits for."""

        def establish() -> None:
            try:
                self._establish(establishment)
            except BaseException as error:  # noqa: BLE001: PyMongo's thread raises it.
                self._failure = establishment.generation, error

        if not establishment.is_aborted:
            threading.Thread(target=establish, name="cenote_establish", daemon=True).start()

    def _forget_parent(self, now: int) -> None:
        """This process is a child. The sockets are the parent's: closing them here sends nothing."""
        self.pid = os.getpid()
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
            conn.close_conn(None)
        self._connections.clear()

    # What the machine wants done.

    def _settle(self) -> None:
        """Pulls the actions. The caller holds the lock. The usual one needs no queue."""
        action, queue = self._action, self._queue
        while True:
            self._machine.pull(action)
            kind, remaining = action.kind, action.remaining
            if kind == _DELIVER and not queue and not self._is_performing:
                self._deliver(action)
            elif kind:
                queue.append(action.copy())
            if not remaining:
                break

    def _perform(self) -> None:
        """Performs the actions in their order, without the lock, unless another thread does so."""
        failed: BaseException | None = None
        with self.lock:
            if self._is_performing:
                return
            self._is_performing = True
        while (action := self._next()) is not None:
            try:
                self._perform_one(action)
            except BaseException as error:  # noqa: BLE001: what comes after it must not be lost.
                failed = failed or error
        if failed is not None:
            raise failed

    def _next(self) -> Action | None:
        with self.lock:
            if self._queue:
                return self._queue.popleft()
            self._is_performing = False
            return None

    def _perform_one(self, action: Action) -> None:
        kind, connection = action.kind, action.connection
        if kind == ActionKind.EMIT_EVENT:
            self._publish(action)
        elif kind == ActionKind.DELIVER:
            with self.lock:
                self._deliver(action)
        elif kind == ActionKind.START_ESTABLISH:
            establishment = _Establishment(connection, action.generation)
            self._establishments[connection] = establishment
            with self.lock:
                waiter = None if action.background else self._waiters.get(action.owner)
                is_awaited = waiter is not None and not waiter.is_gone
                if waiter is not None and is_awaited:
                    waiter.establishment = establishment
                    waiter.notify()
            if not is_awaited:
                self._establish_apart(establishment)
        elif kind == ActionKind.ABORT_ESTABLISH:
            if (aborted := self._establishments.pop(connection, None)) is not None:
                aborted.abort()
        elif kind == ActionKind.CLOSE_SOCKET:
            if (closed := self._connections.pop(connection, None)) is not None:
                closed.close_conn(None)
        elif kind == ActionKind.INTERRUPT:
            if (interrupted := self._connections.get(connection)) is not None:
                interrupted.cancel_context.cancel()

    def _deliver(self, action: Action) -> None:
        """Answers a waiter. The caller holds the lock."""
        waiter = self._waiters.pop(action.waiter)
        if action.error:
            waiter.outcome = CheckOutError(action.error)
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
    """What the machine keeps of an error. The error itself is raised by the thread that met it."""
    text = str(error) or type(error).__name__
    if isinstance(error, OperationFailure):
        return Cause(text, CauseStage.AUTHENTICATION, CauseKind.COMMAND, code=error.code or 0)
    kind = CauseKind.TIMEOUT if isinstance(error, NetworkTimeout) else CauseKind.NETWORK
    return Cause(text, CauseStage.HELLO, kind)
