"""What both pools do: program.py before|after chaos URI SECONDS EVENTS, or program.py before|after ping URI THREADS PINGS.
Prints figures as JSON."""

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import cenote.pymongo
import pymongo
from pymongo import MongoClient, monitoring
from pymongo.errors import PyMongoError

Document = dict[str, Any]
POOLS = {"before": None, "after": cenote.pymongo.Pool}
THREADS = 32


def client(uri: str, **options: Any) -> MongoClient[Document]:
    return MongoClient(uri, _pool_class=POOLS[sys.argv[1]], **options)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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


def chaos(uri: str, seconds: str, path: str) -> Document:
    """Pings by impatient threads over 8 connections, while the server misbehaves."""
    done = [0] * THREADS
    failed: list[dict[str, int]] = [{} for _ in range(THREADS)]
    recorder, end = Recorder(path), time.monotonic() + float(seconds)
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
    options = {"appname": "chaos", "maxPoolSize": 8, "minPoolSize": 2, "maxIdleTimeMS": 500, "waitQueueTimeoutMS": 500}
    with client(uri, event_listeners=[recorder], heartbeatFrequencyMS=500, **options) as subject:

        def work(number: int) -> None:
            dice = random.Random(number)
            while time.monotonic() < end:
                try:
                    with pymongo.timeout(dice.uniform(0.001, 0.02) if dice.random() < 1 / 3 else 10):
                        subject.admin.command("ping")
                    done[number] += 1
                except PyMongoError as error:
                    name = type(error).__name__
                    failed[number][name] = failed[number].get(name, 0) + 1

        def misbehave() -> None:
            dice = random.Random(42)
            while time.monotonic() < end - 1.5:
                time.sleep(1.3)
                dice.choice(faults)()

        trouble = threading.Thread(target=misbehave)
        trouble.start()
        in_threads(THREADS, work)
        trouble.join()
    admin.client.close()
    recorder.file.close()
    errors: dict[str, int] = {}
    for name, count in (item for one in failed for item in one.items()):
        errors[name] = errors.get(name, 0) + count
    return {"done": sum(done), "failed": sum(errors.values()), "errors": errors}


def ping(uri: str, threads: str, pings: str) -> Document:
    """Microseconds for a ping: of time, and of this process's CPU."""
    each = int(pings) // int(threads)
    with client(uri) as subject:

        def work(_: int) -> None:
            for _ in range(each):
                subject.admin.command("ping")

        in_threads(int(threads), work)
        start, start_cpu = time.perf_counter(), time.process_time()
        in_threads(int(threads), work)
        time_taken, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    count = each * int(threads)
    return {"time": time_taken / count * 1e6, "cpu": cpu / count * 1e6}


def pair(uri: str, pairs: str) -> Document:
    """Microseconds of CPU for a check-out and a check-in by one thread."""
    with client(uri) as subject:
        subject.admin.command("ping")
        (server,) = subject._topology._servers.values()
        start = time.process_time()
        for _ in range(int(pairs)):
            with server.pool.checkout():
                pass
        return {"cpu": (time.process_time() - start) / int(pairs) * 1e6}


if __name__ == "__main__":
    kinds: dict[str, Callable[..., Document]] = {"chaos": chaos, "ping": ping, "pair": pair}
    print(json.dumps(kinds[sys.argv[2]](*sys.argv[3:])))
