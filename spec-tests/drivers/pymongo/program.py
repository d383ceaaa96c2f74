"""What both pools do, for threads and, with `async_` before the kind, for tasks of asyncio. Prints figures as JSON:
program.py before|after chaos URI SECONDS EVENTS [PAUSE], …crowd URI SECONDS, …ping URI CALLERS PINGS,
or …pair URI PAIRS [EVENTS]. After a ping in chaos each caller pauses for PAUSE ms on average."""

import asyncio
import importlib
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pymongo
from pymongo import AsyncMongoClient, MongoClient, monitoring
from pymongo.errors import PyMongoError

Document = dict[str, Any]
CALLERS = 32


def pool_class(name: str) -> Document:
    """Cenote's pools cannot be imported with other versions of PyMongo."""
    return {"_pool_class": getattr(importlib.import_module("cenote.pymongo"), name)} if sys.argv[1] == "after" else {}


def client(uri: str, **options: Any) -> MongoClient[Document]:
    return MongoClient(uri, **pool_class("Pool"), **options)


def async_client(uri: str, **options: Any) -> AsyncMongoClient[Document]:
    return AsyncMongoClient(uri, **pool_class("AsyncPool"), **options)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def in_tasks(count: int, work: Callable[[int], Awaitable[None]]) -> None:
    await asyncio.gather(*map(work, range(count)))


class Recorder(monitoring.ConnectionPoolListener):
    """Writes the events of CMAP as lines of JSON."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "w")  # noqa: SIM115
        self.lock = threading.Lock()

    def write(self, event: Any, kind: str, **fields: Any) -> None:
        line = {"type": kind, "address": "{}:{}".format(*event.address), **fields}
        if hasattr(event, "connection_id"):
            line["connectionId"] = event.connection_id
        if hasattr(event, "duration"):
            line["durationMS"] = round(event.duration * 1000, 3)
        if hasattr(event, "reason"):
            line["reason"] = event.reason
        with self.lock:
            self.file.write(json.dumps(line) + "\n")

    def pool_created(self, event: Any) -> None:
        self.write(event, "ConnectionPoolCreated", options=event.options)

    def pool_ready(self, event: Any) -> None:
        self.write(event, "ConnectionPoolReady")

    def pool_cleared(self, event: Any) -> None:
        interrupt = event.interrupt_connections
        self.write(event, "ConnectionPoolCleared", interruptInUseConnections=interrupt)

    def pool_closed(self, event: Any) -> None:
        self.write(event, "ConnectionPoolClosed")

    def connection_created(self, event: Any) -> None:
        self.write(event, "ConnectionCreated")

    def connection_ready(self, event: Any) -> None:
        self.write(event, "ConnectionReady")

    def connection_closed(self, event: Any) -> None:
        self.write(event, "ConnectionClosed")

    def connection_check_out_started(self, event: Any) -> None:
        self.write(event, "ConnectionCheckOutStarted")

    def connection_check_out_failed(self, event: Any) -> None:
        self.write(event, "ConnectionCheckOutFailed")

    def connection_checked_out(self, event: Any) -> None:
        self.write(event, "ConnectionCheckedOut")

    def connection_checked_in(self, event: Any) -> None:
        self.write(event, "ConnectionCheckedIn")


class Chaos:
    """Impatient callers over 8 connections, while the server misbehaves."""

    def __init__(self, uri: str, seconds: str, path: str, pause: str) -> None:
        self.end = time.monotonic() + float(seconds)
        self.pause = float(pause) / 1e3
        # For each caller; threads share no counter.
        self.done = [0] * CALLERS
        self.errors: list[Counter[str]] = [Counter() for _ in range(CALLERS)]
        self.recorder = Recorder(path)
        self.trouble = threading.Thread(target=self.misbehave, args=(uri,))
        self.options: Document = {
            "appname": "chaos",
            "maxPoolSize": 8,
            "minPoolSize": 2,
            "maxIdleTimeMS": 500,
            "waitQueueTimeoutMS": 500,
            "heartbeatFrequencyMS": 500,
            "event_listeners": [self.recorder],
        }

    def misbehave(self, uri: str) -> None:
        admin = MongoClient[Document](uri, appname="admin").admin

        def fail_point(commands: list[str], times: int, **fault: Any) -> None:
            data = {"failCommands": commands, "appName": "chaos", **fault}
            admin.command("configureFailPoint", "failCommand", mode={"times": times}, data=data)

        faults: list[Callable[[], None]] = [
            lambda: fail_point(["ping"], 3, closeConnection=True),
            lambda: fail_point(["hello", "ismaster", "isMaster"], 2, closeConnection=True),
            lambda: fail_point(["hello", "ismaster", "isMaster"], 2, errorCode=91),
            lambda: fail_point(["ping"], 1, errorCode=91),
            lambda: fail_point(["ping"], 8, blockConnection=True, blockTimeMS=200),
        ]
        dice = random.Random(42)
        while time.monotonic() < self.end - 1.5:
            time.sleep(1.3)
            dice.choice(faults)()
        admin.client.close()

    def failed(self, caller: int, error: BaseException) -> None:
        self.errors[caller][type(error).__name__] += 1

    def figures(self) -> Document:
        self.trouble.join()
        self.recorder.file.close()
        errors = sum(self.errors, Counter())
        return {"done": sum(self.done), "failed": errors.total(), "errors": errors}


def chaos(uri: str, seconds: str, path: str, pause: str = "0") -> Document:
    it = Chaos(uri, seconds, path, pause)

    def work(number: int) -> None:
        dice = random.Random(number)
        while time.monotonic() < it.end:
            try:
                with pymongo.timeout(dice.uniform(0.001, 0.02) if dice.random() < 1 / 3 else 10):
                    subject.admin.command("ping")
                it.done[number] += 1
            except PyMongoError as error:
                it.failed(number, error)
            if it.pause:
                time.sleep(2 * it.pause * dice.random())

    with client(uri, **it.options) as subject:
        it.trouble.start()
        in_threads(CALLERS, work)
    return it.figures()


async def async_chaos(uri: str, seconds: str, path: str, pause: str = "0") -> Document:
    """As `chaos`; half of the impatient callers cancel."""
    it = Chaos(uri, seconds, path, pause)

    async def work(number: int) -> None:
        dice = random.Random(number)
        while time.monotonic() < it.end:
            limit = dice.uniform(0.001, 0.02) if dice.random() < 1 / 3 else 10
            try:
                if dice.random() < 1 / 2:
                    async with asyncio.timeout(limit):
                        await subject.admin.command("ping")
                else:
                    with pymongo.timeout(limit):
                        await subject.admin.command("ping")
                it.done[number] += 1
            except (PyMongoError, TimeoutError) as error:
                it.failed(number, error)
            if it.pause:
                await asyncio.sleep(2 * it.pause * dice.random())

    async with async_client(uri, **it.options) as subject:
        it.trouble.start()
        await in_tasks(CALLERS, work)
    return it.figures()


class Crowd:
    """Patient callers over 8 connections, without faults and subscribers."""

    def __init__(self, seconds: str) -> None:
        self.end = time.monotonic() + float(seconds)
        self.done = [0] * CALLERS
        self.longest = [0.0] * CALLERS

    def finished(self, caller: int, start: float) -> None:
        self.done[caller] += 1
        self.longest[caller] = max(self.longest[caller], time.monotonic() - start)

    def figures(self) -> Document:
        return {"done": sum(self.done), "fewest": min(self.done), "longest": max(self.longest) * 1e3}


def crowd(uri: str, seconds: str) -> Document:
    with client(uri, maxPoolSize=8) as subject:
        it = Crowd(seconds)

        def work(number: int) -> None:
            while (start := time.monotonic()) < it.end:
                subject.admin.command("ping")
                it.finished(number, start)

        in_threads(CALLERS, work)
        return it.figures()


async def async_crowd(uri: str, seconds: str) -> Document:
    async with async_client(uri, maxPoolSize=8) as subject:
        it = Crowd(seconds)

        async def work(number: int) -> None:
            while (start := time.monotonic()) < it.end:
                await subject.admin.command("ping")
                it.finished(number, start)

        await in_tasks(CALLERS, work)
        return it.figures()


class Costs:
    """Microseconds for each of a number of things: of time, and of this process's CPU."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.start, self.start_cpu = time.perf_counter(), time.process_time()

    def figures(self) -> Document:
        taken, cpu = time.perf_counter() - self.start, time.process_time() - self.start_cpu
        return {"time": taken / self.count * 1e6, "cpu": cpu / self.count * 1e6}


def ping(uri: str, threads: str, pings: str) -> Document:
    each = int(pings) // int(threads)
    with client(uri) as subject:

        def work(_: int) -> None:
            for _ in range(each):
                subject.admin.command("ping")

        in_threads(int(threads), work)
        costs = Costs(each * int(threads))
        in_threads(int(threads), work)
        return costs.figures()


async def async_ping(uri: str, tasks: str, pings: str) -> Document:
    each = int(pings) // int(tasks)
    async with async_client(uri) as subject:

        async def work(_: int) -> None:
            for _ in range(each):
                await subject.admin.command("ping")

        await in_tasks(int(tasks), work)
        costs = Costs(each * int(tasks))
        await in_tasks(int(tasks), work)
        return costs.figures()


def pair(uri: str, pairs: str, *events: str) -> Document:
    """For a check-out and a check-in by one thread."""
    with client(uri, event_listeners=list(map(Recorder, events))) as subject:
        subject.admin.command("ping")
        (server,) = subject._topology._servers.values()
        costs = Costs(int(pairs))
        for _ in range(int(pairs)):
            with server.pool.checkout():
                pass
        return costs.figures()


async def async_pair(uri: str, pairs: str, *events: str) -> Document:
    async with async_client(uri, event_listeners=list(map(Recorder, events))) as subject:
        await subject.admin.command("ping")
        (server,) = subject._topology._servers.values()
        costs = Costs(int(pairs))
        for _ in range(int(pairs)):
            async with server.pool.checkout():
                pass
        return costs.figures()


if __name__ == "__main__":
    kinds: dict[str, Callable[..., Document]] = {"chaos": chaos, "crowd": crowd, "ping": ping, "pair": pair}
    async_kinds: dict[str, Callable[..., Coroutine[Any, Any, Document]]] = {
        "async_chaos": async_chaos,
        "async_crowd": async_crowd,
        "async_ping": async_ping,
        "async_pair": async_pair,
    }
    kind, arguments = sys.argv[2], sys.argv[3:]
    figures = kinds[kind](*arguments) if kind in kinds else asyncio.run(async_kinds[kind](*arguments))
    print(json.dumps(figures))
