"""Cenote's pools for PyMongo::

    from cenote.pymongo import AsyncPool, Pool

    client = MongoClient(uri, _pool_class=Pool)
    client = AsyncMongoClient(uri, _pool_class=AsyncPool)

Sockets, handshakes, threads and tasks, errors, log messages and the monitor are PyMongo's. The decisions are Cenote's: the queue
of check-outs, maxConnecting, clear and generations, minPoolSize, idle connections, pause and ready, close, forks, and the order
of events.
"""

import asyncio
import os
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pymongo

from ._pool import NEVER

try:
    from bson import ObjectId
    from pymongo import _csot
    from pymongo.asynchronous import pool as _asynchronous
    from pymongo.synchronous import pool as _synchronous

    from ._pymongo_shared import DecidedPool, Establishment, Waiter
except ImportError as error:
    _lacks = f"uses private parts of PyMongo 4.20 that PyMongo {pymongo.version} does not have"
    raise ImportError(f"cenote.pymongo {_lacks}: install 'pymongo~=4.20.0' ({error})") from error

if TYPE_CHECKING:
    from pymongo.asynchronous import mongo_client as _asynchronous_client
    from pymongo.synchronous import mongo_client as _synchronous_client

__all__ = ["AsyncPool", "Pool", "recorded"]

_T = TypeVar("_T")
_P = TypeVar("_P", bound="type[DecidedPool[Any, Any]]")


class _Thread(Waiter):
    """A thread that wants a connection."""

    __slots__ = ("wake",)

    def __init__(self, handler: Any) -> None:
        super().__init__(handler)
        self.wake = threading.Lock()
        self.wake.acquire()

    def notify(self) -> None:
        if self.wake.locked():
            self.wake.release()


class _Checkout(_synchronous._PoolCheckout):
    """A check-out as a context manager."""

    __slots__ = ()
    _pool: "Pool"

    def __enter__(self) -> _synchronous.Connection:
        self._conn = self._pool._get_conn(0.0, self._handler)
        return self._conn

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        conn = self._conn
        if conn is not None and self._pool._must_return(conn, error):
            self._pool.checkin(conn)


class Pool(DecidedPool[_synchronous.Connection, _Thread], _synchronous.Pool):
    """The pool of a ``MongoClient``. A thread that is to get a new connection makes it."""

    def ready(self) -> None:
        self._feed(self._machine.ready)

    def _reset(
        self,
        close: bool,
        pause: bool = True,
        service_id: ObjectId | None = None,
        interrupt_connections: bool = False,
    ) -> None:
        self._clear(close, pause, service_id, interrupt_connections)

    def update_is_writable(self, is_writable: bool | None) -> None:
        self._update_is_writable(is_writable)

    def remove_stale_sockets(self, reference_generation: int) -> None:
        self._maintain(reference_generation)

    def checkout(self, handler: "_synchronous_client._ClientCheckout | None" = None) -> _Checkout:
        return _Checkout(self, handler)

    def checkin(self, conn: _synchronous.Connection) -> None:
        self._check_in(conn)

    def _get_conn(
        self, checkout_started_time: float, handler: "_synchronous_client._ClientCheckout | None" = None
    ) -> _synchronous.Connection:
        waiter = _Thread(handler)
        self._ask(waiter)
        try:
            if self._queue and not self._is_performing:
                self._perform()
            if waiter.outcome is None or waiter.establishment is not None:
                self._wait(waiter)
        except BaseException:
            self._give_up(waiter)
            raise
        return self._outcome(waiter, checkout_started_time)

    def _wait(self, waiter: _Thread) -> None:
        """Waits until the machine answers. Makes the connection of this request, if there is one to make."""
        while waiter.outcome is None:
            establishment, waiter.establishment = waiter.establishment, None
            if establishment is not None:
                self._establish(establishment, waiter.handler)
            elif waiter.deadline == NEVER:
                waiter.wake.acquire()
            else:
                left = max((waiter.deadline - time.monotonic_ns()) / 1e9, 0.0005)
                if not waiter.wake.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
                    self._feed(self._machine.timer)
        self._establish_apart(waiter.establishment)

    def _give_up(self, waiter: _Thread) -> None:
        super()._give_up(waiter)
        self._establish_apart(waiter.establishment)

    def _start(self, establishment: Establishment, owner: int) -> None:
        with self._guard:
            waiter = self._waiters.get(owner)
            if waiter is not None and not waiter.is_gone:
                waiter.establishment = establishment
                waiter.notify()
                return
        self._establish_apart(establishment)

    def _establish(self, establishment: Establishment, handler: "_synchronous_client._ClientCheckout | None") -> None:
        """Makes a connection as PyMongo does."""
        try:
            with establishment:
                conn = self.connect(handler)
        except BaseException as error:
            self._establish_failed(establishment, error)
            raise
        self._established(establishment, conn)

    def _establish_apart(self, establishment: Establishment | None) -> None:
        """Makes a connection that no thread waits for, perhaps because its request has ended."""
        if establishment is None or establishment.is_aborted:
            return

        def establish() -> None:
            try:
                self._establish(establishment, None)
            except BaseException as error:  # noqa: BLE001: PyMongo's thread raises it.
                self._failure = establishment.generation, error

        threading.Thread(target=establish, name="cenote_establish", daemon=True).start()

    def _close_socket(self, conn: _synchronous.Connection) -> None:
        conn.close_conn(None)


class _Task(Waiter):
    """A task that wants a connection."""

    __slots__ = ("error", "wake")

    def __init__(self, handler: Any) -> None:
        super().__init__(handler)
        # Made when it has to wait.
        self.wake: asyncio.Event | None = None
        # Why the connection of this request could not be made, or what a subscriber of its events raised.
        self.error: BaseException | None = None

    def notify(self) -> None:
        if self.wake is not None:
            self.wake.set()


class _AsyncCheckout(_asynchronous._PoolCheckout):
    """A check-out as a context manager."""

    __slots__ = ()
    _pool: "AsyncPool"

    async def __aenter__(self) -> _asynchronous.AsyncConnection:
        self._conn = await self._pool._get_conn(0.0, self._handler)
        return self._conn

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        conn = self._conn
        if conn is not None and self._pool._must_return(conn, error):
            await self._pool.checkin(conn)


class AsyncPool(DecidedPool[_asynchronous.AsyncConnection, _Task], _asynchronous.Pool):
    """The pool of an ``AsyncMongoClient``. A task of its own makes each connection, so that a caller that is cancelled or runs out
    of time takes nothing with it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # The event loop itself keeps no reference to its tasks.
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        super().__init__(*arguments, **options)

    async def ready(self) -> None:
        self._feed(self._machine.ready)

    async def _reset(
        self,
        close: bool,
        pause: bool = True,
        service_id: ObjectId | None = None,
        interrupt_connections: bool = False,
    ) -> None:
        self._clear(close, pause, service_id, interrupt_connections)
        await _ended(self._tasks | self._closing if close else self._closing)

    async def update_is_writable(self, is_writable: bool | None) -> None:
        self._update_is_writable(is_writable)

    async def remove_stale_sockets(self, reference_generation: int) -> None:
        self._maintain(reference_generation)
        await _ended(self._closing)

    def checkout(self, handler: "_asynchronous_client._ClientCheckout | None" = None) -> _AsyncCheckout:
        return _AsyncCheckout(self, handler)

    async def checkin(self, conn: _asynchronous.AsyncConnection) -> None:
        self._check_in(conn)
        await _ended(self._closing)

    async def _get_conn(
        self, checkout_started_time: float, handler: "_asynchronous_client._ClientCheckout | None" = None
    ) -> _asynchronous.AsyncConnection:
        waiter = _Task(handler)
        self._ask(waiter)
        try:
            if self._queue and not self._is_performing:
                self._perform()
            if waiter.outcome is None:
                await self._wait(waiter)
            if waiter.error is not None:
                raise waiter.error
        except BaseException:
            self._give_up(waiter)
            raise
        return self._outcome(waiter, checkout_started_time)

    async def _wait(self, waiter: _Task) -> None:
        """Waits until the machine answers."""
        wake = waiter.wake = asyncio.Event()
        while waiter.outcome is None:
            wake.clear()
            # `waitQueueTimeoutMS` is for the queue, `timeoutMS` also for a connection that is made.
            is_limited = waiter.establishment is None or _csot.get_timeout() is not None
            if waiter.deadline == NEVER or not is_limited:
                await wake.wait()
            elif (left := waiter.deadline - time.monotonic_ns()) <= 0:
                self._feed(lambda now: self._machine.cancel(now, waiter.request))
            else:
                timer = asyncio.get_running_loop().call_later(left / 1e9, waiter.notify)
                try:
                    await wake.wait()
                finally:
                    timer.cancel()

    def _give_up(self, waiter: _Task) -> None:
        super()._give_up(waiter)
        # A monitor that is stopped leaves no connection behind; other requests can use that of an application.
        if self.is_sdam and waiter.establishment is not None:
            waiter.establishment.abort()

    def _start(self, establishment: Establishment, owner: int) -> None:
        waiter = self._waiters.get(owner)
        if waiter is not None:
            waiter.establishment = establishment
        task = _spawn(self._connect(establishment, waiter), self._tasks)
        establishment.task = task
        task.add_done_callback(lambda task: self._finish(establishment, waiter, task))

    async def _connect(
        self, establishment: Establishment, waiter: _Task | None
    ) -> _asynchronous.AsyncConnection | BaseException:
        # The time of the operation is not that of the connection, which others can use.
        _csot.reset_all()
        try:
            with establishment:
                return await self.connect(waiter.handler if waiter is not None else None)
        except BaseException as error:  # noqa: BLE001: the caller raises it.
            return error

    def _finish(
        self,
        establishment: Establishment,
        waiter: _Task | None,
        task: asyncio.Task[_asynchronous.AsyncConnection | BaseException],
    ) -> None:
        """Tells the machine how an establishment ended, even if it was cancelled before it began."""
        is_awaited = waiter is not None and waiter.outcome is None and not waiter.is_gone
        result = asyncio.CancelledError() if task.cancelled() else task.result()
        try:
            if isinstance(result, BaseException):
                self._establish_failed(establishment, result)
                error: BaseException | None = result
            else:
                self._established(establishment, result)
                error = None
        except BaseException as raised:  # noqa: BLE001: by a subscriber of events.
            error = raised
        if error is None or establishment.is_aborted:
            return
        if waiter is not None and is_awaited:
            waiter.error = error
            waiter.notify()
        elif not isinstance(error, asyncio.CancelledError):
            self._failure = establishment.generation, error

    def _close_socket(self, conn: _asynchronous.AsyncConnection) -> None:
        _spawn(conn.close_conn(None), self._closing)


def recorded(pool: _P, folder: str | os.PathLike[str]) -> _P:
    """A class of pools that record what happens to them, each in a new file of this folder: every input, without credentials and
    payloads. PyMongo's maintenance writes it every second, that of an ``AsyncPool`` on the event loop, and ``close`` the rest::

        client = MongoClient(uri, _pool_class=recorded(Pool, "traces"))

    ``cenote explain``, ``predict``, ``draw`` and ``replay`` read it. A forked child records in files of its own. If the file cannot
    be written, the recording ends with a warning of the logger ``cenote``."""
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return type(pool.__name__, (pool,), {"_folder": folder})  # type: ignore[return-value]


def _spawn(work: Coroutine[Any, Any, _T], tasks: set[asyncio.Task[_T]]) -> asyncio.Task[_T]:
    """Begins a task, which is in `tasks` until it ends."""
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Waits until tasks have ended, and leaves them alone if it is cancelled."""
    if tasks and (others := tasks - {asyncio.current_task()}):
        await asyncio.wait(others)
