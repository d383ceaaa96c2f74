"""`cenote explain` on the events of official drivers: python explain_events.py PATH_OF_CENOTE PATH_OF_LOAD_MJS

PyMongo and the Node driver are used by callers of which some run out of time, and the cause has to be named.
`.ci/clients` installs both drivers and runs this.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import check, connected, endpoint, run
from listener import Events
from pymongo.errors import WaitQueueTimeoutError

FEW, MANY = 6, 60  # Callers for four connections, each with a command of 20 ms and a pause.
HELD = []  # Connections that are leaked.
NODE = sys.argv[2]


def slow(client, milliseconds):
    data = {"failCommands": ["ping"], "blockConnection": True, "blockTimeMS": milliseconds}
    client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=data)


def work(client):
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            client.admin.command("ping")
        except WaitQueueTimeoutError:
            pass
        time.sleep(0.02 * random.random())


def with_pymongo(uri, events, callers, meanwhile=lambda client: None):
    listener = Events(events)
    options = {"maxPoolSize": 4, "waitQueueTimeoutMS": 200, "event_listeners": [listener]}
    with connected(uri, **options) as client:
        threads = [threading.Thread(target=work, args=[client]) for _ in range(callers)]
        [thread.start() for thread in threads]
        meanwhile(client)
        [thread.join() for thread in threads]
        # What is given back now is no part of the incident.
        listener.file.close()
        listener.file = open(os.devnull, "a")
        [held.__exit__(None, None, None) for held in HELD]
        HELD.clear()
    listener.file.close()


def with_node(uri, events, callers):
    subprocess.run(["node", NODE, uri, events, str(callers)], check=True)


def explained(incident):
    """What is told of an incident: the causes of failures and of waits."""
    with endpoint() as uri, TemporaryDirectory() as folder, connected(uri) as other:
        slow(other, 20)
        events = Path(folder) / "events.jsonl"
        incident(f"{uri}?directConnection=true", events, other)
        told = subprocess.run([sys.argv[1], "explain", events, "--json"], check=True, capture_output=True)
    groups = json.loads(told.stdout)["groups"]
    return [group["cause"] for group in groups if group["cause"]], groups


def names(incident, cause):
    causes, groups = explained(incident)
    assert causes and causes[0].startswith(cause), groups


def outage(other):
    """Four commands of a second."""
    time.sleep(1.5)
    slow(other, 1000)
    time.sleep(1)
    slow(other, 20)


@check
def too_few_connections_of_pymongo():
    names(lambda uri, events, _: with_pymongo(uri, events, MANY), "more work than connections: ")


@check
def a_slow_query_of_pymongo():
    names(lambda uri, events, other: with_pymongo(uri, events, FEW, lambda _: outage(other)), "slow uses: ")


@check
def a_leak_of_pymongo():
    def leak(client):
        (server,) = client._topology._servers.values()
        for _ in range(3):
            time.sleep(0.5)
            HELD.append(server.pool.checkout())
            HELD[-1].__enter__()

    names(lambda uri, events, _: with_pymongo(uri, events, FEW, leak), "a leak: 3 of 4 connections ")


@check
def too_few_connections_of_node():
    names(lambda uri, events, _: with_node(uri, events, MANY), "more work than connections: ")


@check
def a_slow_query_of_node():
    def incident(uri, events, other):
        threading.Thread(target=outage, args=[other]).start()
        with_node(uri, events, FEW)

    names(incident, "slow uses: ")


if __name__ == "__main__":
    sys.exit(run())
