"""The pool of an `AsyncMongoClient`, with sockets that are none: what callers that give up leave behind."""

import asyncio
import importlib
import sys
import unittest
import unittest.mock
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pymongo
from cenote.pymongo import AsyncPool, recorded
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.errors import AutoReconnect, WaitQueueTimeoutError
from pymongo.pool_options import PoolOptions


class Socket:
    """A socket that is open until it is closed."""

    def __init__(self) -> None:
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class Pool(AsyncPool):
    """A pool whose connections are ready, or fail, when the test says so."""

    def __init__(self, **options: Any) -> None:
        self.answers: list[asyncio.Future[None]] = []
        super().__init__(("db", 1), PoolOptions(**options))

    async def connect(self, handler: Any = None) -> AsyncConnection:
        number = self.next_connection_id
        answer = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        await answer
        return AsyncConnection(Socket(), self, self.address, number, False)  # type: ignore[arg-type]


async def settled() -> None:
    """Lets all other tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


class Recorded(unittest.IsolatedAsyncioTestCase):
    async def test_a_pool_writes_what_happens_to_it(self) -> None:
        with TemporaryDirectory() as folder:
            pool = recorded(Pool, folder)(max_pool_size=1)
            await pool.ready()
            await pool.remove_stale_sockets(0)
            [file] = Path(folder).iterdir()
            begun = file.read_bytes()
            self.assertIn(b"cenote-trace", begun)
            await pool.close()
            await pool.remove_stale_sockets(0)
            self.assertTrue(file.read_bytes().startswith(begun))
            self.assertGreater(file.stat().st_size, len(begun))
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)

    async def test_a_disk_without_space_ends_the_recording_alone(self) -> None:
        with TemporaryDirectory() as folder, self.assertLogs("cenote", "WARNING"):
            pool = recorded(Pool, folder)(max_pool_size=1)
            with open("/dev/full", "wb", buffering=0) as full:
                with unittest.mock.patch.object(pool._recording, "_file", full):
                    await pool.ready()
                    await pool.remove_stale_sockets(0)
                    await pool.close()


class GivenUp(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.make()

    async def make(self, **options: Any) -> None:
        self.pool = Pool(**{"max_pool_size": 1, **options})
        await self.pool.ready()

    async def check_out(self) -> asyncio.Task[AsyncConnection]:
        """A check-out, as far as it comes."""
        task = asyncio.create_task(self.pool.checkout().__aenter__())
        await settled()
        return task

    async def connect(self, error: BaseException | None = None) -> None:
        """The first connection becomes ready, or fails."""
        answer = self.pool.answers[0]
        answer.set_exception(error) if error is not None else answer.set_result(None)
        await settled()

    async def checked_out(self) -> AsyncConnection:
        task = await self.check_out()
        await self.connect()
        return task.result()

    async def cancel(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        await settled()
        self.assertTrue(task.cancelled())

    async def test_a_cancelled_request_leaves_the_queue(self) -> None:
        first = await self.checked_out()
        second, third = await self.check_out(), await self.check_out()
        self.assertEqual(self.pool.operation_count, 3)
        await self.cancel(second)
        self.assertEqual(self.pool.operation_count, 2)
        await self.pool.checkin(first)
        self.assertEqual(await third, first)

    async def test_a_connection_is_made_although_its_caller_was_cancelled(self) -> None:
        await self.cancel(await self.check_out())
        self.assertEqual((self.pool._pending, self.pool.operation_count), (1, 0))
        await self.connect()
        self.assertEqual((len(self.pool.conns), self.pool._pending), (1, 0))
        conn = await self.pool.checkout().__aenter__()
        self.assertEqual((conn.id, len(self.pool.answers)), (1, 1))

    async def test_a_connection_that_was_delivered_to_a_cancelled_caller_returns(self) -> None:
        first = await self.checked_out()
        second = await self.check_out()
        # It has the connection, and has not run since.
        await self.pool.checkin(first)
        self.assertEqual(self.pool.conns, [])
        second.cancel()
        await settled()
        self.assertTrue(second.cancelled())
        self.assertEqual(self.pool.conns, [first])

    async def test_a_check_in_is_done_although_it_was_cancelled(self) -> None:
        conn = await self.checked_out()
        await conn.close_conn(None)
        task = asyncio.create_task(self.pool.checkin(conn))
        await asyncio.sleep(0)
        task.cancel()
        await settled()
        self.assertEqual((self.pool.active_sockets, self.pool._machine.snapshot().total), (0, 0))

    async def test_the_caller_sees_why_its_connection_failed(self) -> None:
        task = await self.check_out()
        await self.connect(error=AutoReconnect("refused"))
        with self.assertRaisesRegex(AutoReconnect, "refused"):
            await task
        self.assertEqual((self.pool.operation_count, self.pool._pending), (0, 0))

    async def test_maintenance_shows_why_a_connection_failed_that_has_no_caller(self) -> None:
        await self.cancel(await self.check_out())
        await self.connect(error=AutoReconnect("refused"))
        with self.assertRaisesRegex(AutoReconnect, "refused"):
            await self.pool.remove_stale_sockets(self.pool.gen.get_overall())
        await self.pool.remove_stale_sockets(self.pool.gen.get_overall())

    async def test_a_caller_waits_no_longer_than_it_may_for_a_new_connection(self) -> None:
        with self.assertRaises(WaitQueueTimeoutError), pymongo.timeout(0.01):
            await self.pool.checkout().__aenter__()
        await self.connect()
        self.assertEqual(len(self.pool.conns), 1)

    async def test_the_time_for_the_queue_is_not_for_a_new_connection(self) -> None:
        await self.make(wait_queue_timeout=0.01)
        task = await self.check_out()
        await asyncio.sleep(0.05)
        self.assertFalse(task.done())
        await self.connect()
        self.assertEqual(task.result().id, 1)

    async def test_a_caller_waits_no_longer_than_it_may_in_the_queue(self) -> None:
        await self.make(wait_queue_timeout=0.01)
        first = await self.checked_out()
        with self.assertRaises(WaitQueueTimeoutError):
            await self.pool.checkout().__aenter__()
        self.assertEqual(self.pool.operation_count, 1)
        await self.pool.checkin(first)

    async def test_a_closed_pool_leaves_no_task_and_no_socket(self) -> None:
        await self.make(max_pool_size=3)
        used, pending = await self.checked_out(), await self.check_out()
        await self.pool.close()
        self.assertEqual((self.pool._tasks, self.pool._closing), (set(), set()))
        with self.assertRaises(AutoReconnect):
            await pending
        await self.pool.checkin(used)
        self.assertTrue(used.closed)

    async def test_an_interrupting_clear_stops_what_is_being_made(self) -> None:
        task = await self.check_out()
        await self.pool.reset(interrupt_connections=True)
        await settled()
        self.assertTrue(self.pool.answers[0].cancelled())
        with self.assertRaisesRegex(AutoReconnect, "paused"):
            await task

    async def test_a_stopped_monitor_leaves_no_connection(self) -> None:
        self.pool.is_sdam = True
        await self.cancel(await self.check_out())
        self.assertTrue(self.pool.answers[0].cancelled())
        self.assertEqual(self.pool._machine.snapshot().total, 0)


class OtherPyMongo(unittest.TestCase):
    def test_the_error_names_both_versions(self) -> None:
        with unittest.mock.patch.dict(sys.modules, {"pymongo.pool_shared": None}):
            del sys.modules["cenote.pymongo"], sys.modules["cenote._pymongo_shared"]
            with self.assertRaisesRegex(ImportError, rf"PyMongo 4\.20 that PyMongo {pymongo.version} .*pool_shared"):
                importlib.import_module("cenote.pymongo")


if __name__ == "__main__":
    unittest.main()
