"""`cenote explain` and `predict` on the events of official drivers: python explain_events.py PATH_OF_CENOTE PATH_OF_LOAD_MJS

PyMongo and the Node driver are used by callers of which some run out of time, and the cause has to be named; pools of two
sizes have to predict each other's waits. `.ci/clients` installs both drivers and runs this.
"""

import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import check, connected, endpoint, run
from listener import Events
from pymongo.errors import ConnectionFailure

FEW, MANY = 6, 60  # Callers for four connections, each with a command of 20 ms and a pause.
HELD = []  # Connections that are leaked.
NODE = sys.argv[2]


def fail(client, commands, **how):
    data = {"failCommands": commands} | how
    client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=data)


def slow(client, milliseconds):
    fail(client, ["ping"], blockConnection=True, blockTimeMS=milliseconds)


def work(client):
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            client.admin.command("ping")
        except ConnectionFailure:
            pass
        time.sleep(0.02 * random.random())


def with_pymongo(uri, events, callers, meanwhile=lambda client: None, **options):
    listener = Events(events)
    logger, log = logging.getLogger("pymongo.connection"), logging.FileHandler(events.with_suffix(".log"))
    log.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    logger.setLevel("DEBUG")
    logger.addHandler(log)
    options = {"maxPoolSize": 4, "waitQueueTimeoutMS": 200, "event_listeners": [listener]} | options
    with connected(uri, **options) as client:
        threads = [threading.Thread(target=work, args=[client]) for _ in range(callers)]
        [thread.start() for thread in threads]
        meanwhile(client)
        [thread.join() for thread in threads]
        # What is given back now is no part of the incident.
        logger.removeHandler(log)
        log.close()
        listener.file.close()
        listener.file = open(os.devnull, "a")
        [held.__exit__(None, None, None) for held in HELD]
        HELD.clear()
    listener.file.close()


def with_node(uri, events, callers, maxPoolSize=4, waitQueueTimeoutMS=200, **options):
    options |= {"maxPoolSize": maxPoolSize, "waitQueueTimeoutMS": waitQueueTimeoutMS}
    uri += "".join(f"&{name}={value}" for name, value in options.items())
    with open(events.with_suffix(".log"), "w") as log:
        environment = os.environ | {"MONGODB_LOG_CONNECTION": "debug"}
        subprocess.run(["node", NODE, uri, events, str(callers)], check=True, env=environment, stderr=log)


def told(incident, command, *options):
    """What Cenote tells of an incident by the driver's events, and by its log."""
    with endpoint() as uri, TemporaryDirectory() as folder, connected(uri) as other:
        slow(other, 20)
        events = Path(folder) / "events.jsonl"
        incident(f"{uri}?directConnection=true", events, other)
        arguments = [[sys.argv[1], command, file, "--json", *options] for file in [events, events.with_suffix(".log")]]
        return [subprocess.check_output(it, stderr=subprocess.DEVNULL) for it in arguments]


def names(incident, cause):
    for pools in told(incident, "explain"):
        # The log has those of the other client, too.
        pools = map(json.loads, pools.splitlines())
        groups = max(pools, key=lambda pool: sum(pool["requests"].values()))["groups"]
        causes = [group["cause"] for group in groups if group["cause"]]
        assert causes and causes[0].startswith(cause), groups


def predicts_waits(recorded, size):
    """Pools of both sizes predict the other's p99 wait."""
    small, large = ([*recorded(size, other)] for size, other in [(size, 2 * size), (2 * size, size)])
    for one, other in [*zip(small, large), *zip(large, small)]:
        draws = sorted(draw["waitMS"]["p99"] for draw in one["predictions"][0]["draws"])
        predicted, true = draws[len(draws) // 2], other["recorded"]["waitMS"]["p99"]
        print(f"p99 wait: {predicted:.1f} ms predicted, {true:.1f} ms happened")
        assert abs(predicted - true) <= 0.25 * true, (predicted, true)


HELLO = ["hello", "isMaster", "ismaster"]


def slow_logins(other):
    fail(other, HELLO, blockConnection=True, blockTimeMS=150, appName="shop")


def restart(other):
    """Half a second without a server."""
    time.sleep(1.5)
    fail(other, [*HELLO, "ping"], closeConnection=True, appName="shop")
    time.sleep(0.5)
    slow(other, 20)


SHOP = {"appName": "shop", "heartbeatFrequencyMS": 500}


def outage(other):
    """Four commands of a second."""
    time.sleep(1.5)
    slow(other, 1000)
    time.sleep(1)
    slow(other, 20)


def storm(driver):
    def incident(uri, events, other):
        slow_logins(other)
        driver(uri, events, FEW * 5, appName="shop", maxPoolSize=50)

    names(incident, "many new connections: ")


def clear(driver):
    def incident(uri, events, other):
        threading.Thread(target=restart, args=[other]).start()
        driver(uri, events, FEW * 5, **SHOP, waitQueueTimeoutMS=2000)

    names(incident, "the pool was cleared at ")


def waits_of_another_size(driver, *how):
    def recorded(size, other):
        def incident(uri, events, _):
            driver(uri, events, 0, *how, maxPoolSize=size, waitQueueTimeoutMS=5000)

        return map(json.loads, told(incident, "predict", "--what-if", f"maxPoolSize={other}"))

    predicts_waits(recorded, 4)


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
def a_storm_of_pymongo():
    storm(with_pymongo)


@check
def a_clear_of_pymongo():
    clear(with_pymongo)


@check
def waits_of_another_size_of_pymongo():
    def bursts(client):
        with ThreadPoolExecutor(32) as callers:
            for _ in range(24):
                [callers.submit(client.admin.command, "ping") for _ in range(16)]
                time.sleep(0.25)

    waits_of_another_size(with_pymongo, bursts)


@check
def too_few_connections_of_node():
    names(lambda uri, events, _: with_node(uri, events, MANY), "more work than connections: ")


@check
def a_slow_query_of_node():
    def incident(uri, events, other):
        threading.Thread(target=outage, args=[other]).start()
        with_node(uri, events, FEW)

    names(incident, "slow uses: ")


@check
def a_storm_of_node():
    storm(with_node)


@check
def a_clear_of_node():
    clear(with_node)


@check
def waits_of_another_size_of_node():
    waits_of_another_size(with_node)


if __name__ == "__main__":
    sys.exit(run())
