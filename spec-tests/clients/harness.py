"""What the checks of a client have in common: endpoints, clients, and the telling of results."""

import subprocess
import sys
import threading
import time
import traceback
import warnings
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pymongo
from pymongo import MongoClient
from pymongo.errors import ServerSelectionTimeoutError

PATIENCE = 20  # Seconds for what takes milliseconds, on the slowest machine.

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@contextmanager
def endpoint(*arguments):
    """A running endpoint: its connection string. It must end well when it is asked to."""
    process = subprocess.Popen(
        [sys.argv[1], "endpoint", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr))
    reader.start()
    try:
        uri = process.stdout.readline().strip()
        assert uri.startswith("mongodb://"), f"the first line is {uri!r}"
        yield uri
    except BaseException as error:
        process.terminate()
        reader.join()
        error.add_note("the endpoint said:\n" + "".join(said))
        raise
    else:
        process.terminate()
        status = process.wait(PATIENCE)
        reader.join()
        assert status == 0, f"the endpoint ended with {status}:\n" + "".join(said)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@contextmanager
def connected(uri, **options):
    options = {"serverSelectionTimeoutMS": PATIENCE * 1000, **options}
    with MongoClient(uri, **options) as client:
        yield client


def option(uri, name):
    """The value of an option of a connection string."""
    return parse_qs(urlsplit(uri).query)[name][0]


def refused(uri, **options):
    """Why no server can be had."""
    try:
        with connected(uri, **{"serverSelectionTimeoutMS": 1500, **options}) as client:
            client.admin.command("ping")
    except ServerSelectionTimeoutError as error:
        return str(error)
    raise AssertionError("the connection was accepted")


def fails(kind, action):
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what}: it did not happen"
        time.sleep(0.01)


def run():
    """Runs the checks in their order; gives the exit status."""
    # A missing compressor is a warning of PyMongo's, and would make a check worthless.
    warnings.simplefilter("error")
    print(f"PyMongo {pymongo.version} against {sys.argv[1]} endpoint")
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        start = time.monotonic()
        try:
            function()
        except Exception as error:
            traceback.print_exc()
            print(f"FAILED {name}: {error!r}")
            return 1
        print(f"passed {name} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{len(CHECKS)} passed, 0 failed")
    return 0
