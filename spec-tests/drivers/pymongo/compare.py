"""Runs PyMongo's own tests, chaos and pings with PyMongo's pool ("before") and with Cenote's ("after"), and prints both beside
each other. Exits with 1 if Cenote's pool fails: compare.py FOLDER CHAOS_SECONDS, where FOLDER has PyMongo's source package."""

import collections
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from servers import CENOTE, endpoint, secantus

HERE = Path(__file__).resolve().parent
FOLDER = Path(sys.argv[1]).resolve()
SECONDS = sys.argv[2]
POOLS = ("before", "after")
# PyMongo's tests of pools, by the server that can serve most of each: for threads, and for tasks of asyncio.
TESTS = {
    "SecantusDB": (
        "pooling connection_monitoring discovery_and_monitoring csot threads fork client_backpressure topology server"
        " heartbeat_monitoring",
        "pooling connection_monitoring discovery_and_monitoring csot client_backpressure heartbeat_monitoring"
        " async_cancellation",
    ),
    "endpoint": ("connection_logging", "connection_logging"),
    "balancer": ("load_balancer discovery_and_monitoring", "load_balancer discovery_and_monitoring"),
}
ROUNDS = 5
CROWD_SECONDS = 5
PINGS = {1: 2000, 32: 3200}
Outcomes = dict[tuple[str, str], str]
verdicts: list[bool] = []


def row(name: str, values: Iterable[object], passed: bool | None = None) -> None:
    """One line of the table; without a verdict it only informs."""
    before, after = map(str, values)
    verdict = {None: "", True: "passed", False: "FAILED"}[passed]
    print(f"{name:<58} {before:>16} {after:>16}  {verdict}".rstrip(), flush=True)
    if passed is not None:
        verdicts.append(passed)


def tested(pool: str, uri: str, tests: list[str], name: str) -> Outcomes:
    """Runs tests of PyMongo, and tells the outcome of each by its file and name."""
    url, report = urlsplit(uri), FOLDER / f"{name}-{pool}.xml"
    environment = os.environ | {
        "DB_IP": url.hostname or "",
        "DB_PORT": str(url.port),
        "PYTHONPATH": str(HERE),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if "loadBalanced" in uri:
        names = ("SINGLE_MONGOS_LB_URI", "MULTI_MONGOS_LB_URI")
        environment |= {"TEST_LOAD_BALANCER": "1", **dict.fromkeys(names, uri)}
    # PyMongo's options ask for packages that its tests of pools do not need.
    options = ["-o", "addopts=", "-o", "filterwarnings=", "-p", "no:cacheprovider", "--tb=short", "--timeout=60", "-q"]
    plugin = ["-p", "cenote_plugin"] if pool == "after" else []
    command = [sys.executable, "-m", "pytest", *options, *plugin, f"--junitxml={report}", *tests]
    report.unlink(missing_ok=True)
    log = report.with_suffix(".log")
    with log.open("w") as output:
        subprocess.run(command, cwd=FOLDER / "pymongo", env=environment, stdout=output, stderr=output, timeout=900)
    if not report.exists():
        sys.exit(f"pytest wrote no report: {log}\n{log.read_text()[-2000:]}")
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file, *classes = re.split(r"\.(?=[A-Z])", case.attrib["classname"])
        failed = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        test = ".".join([*classes, case.attrib["name"]])
        outcomes[file.replace(".", "/") + ".py", test] = failed[0] if failed else "passed"
    return outcomes


def served(kind: str, name: str) -> AbstractContextManager[str]:
    if kind == "SecantusDB":
        return secantus(FOLDER / f"{name}.server")
    return endpoint("--load-balanced", "2") if kind == "balancer" else endpoint()


def private() -> dict[tuple[str, str], str]:
    """The tests that replace private parts of PyMongo's pool, as private.txt lists them."""
    listed = re.findall(r"^(test/[\w/]+\.py):(\d+) ([\w.]+): (.+)$", (HERE / "private.txt").read_text(), re.M)
    return {(file, test): f"{file}:{line} {reason}" for file, line, test, reason in listed}


def own_tests(kind: str, files: list[str], exceptions: dict[tuple[str, str], str]) -> None:

    def run(job: tuple[str, str]) -> Outcomes:
        pool, file = job
        name = f"{kind}-{file.replace('/', '-')}"
        with served(kind, f"{name}-{pool}") as uri:
            return tested(pool, uri, [file], name)

    # They sleep most of the time, so some run at once, each with a server of its own.
    jobs = [(pool, file) for file in files for pool in POOLS]
    before, after = Outcomes(), Outcomes()
    with ThreadPoolExecutor(8) as threads:
        for (pool, _), outcomes in zip(jobs, threads.map(run, jobs), strict=True):
            (before if pool == "before" else after).update(outcomes)
    lost = {test for test, outcome in before.items() if outcome == "passed" and after.get(test) != "passed"}
    # Tests of time can fail on a busy machine: what was lost runs once more, alone, in both.
    again = sorted(lost - exceptions.keys())
    if again:
        ids = ["::".join([file, *test.split(".")]) for file, test in again]
        for pool, outcomes in zip(POOLS, (before, after), strict=True):
            with served(kind, f"{kind}-again-{pool}") as uri:
                outcomes |= tested(pool, uri, ids, f"{kind}-again")
    lost = {test for test in lost if before[test] == "passed" and after.get(test) != "passed"}
    for file in files:
        passed = [sum(it == "passed" for (of, _), it in each.items() if of == file) for each in (before, after)]
        bad = sorted(test for test in lost if test[0] == file and test not in exceptions)
        row(f"{file}, {kind}", passed, not bad and passed[0] > 0)
        for test in bad:
            print("    passes before, not after:", test[1])
        for test in sorted(test for test in lost if test[0] == file and test in exceptions):
            print("    private:", exceptions[test])
    total = [collections.Counter(each.values()) for each in (before, after)]
    for outcome in ("failure", "error", "skipped"):
        row(f"  of all these: {outcome}", [it[outcome] for it in total])
    for test in sorted(test for test in exceptions.keys() & before.keys() if test not in lost):
        row(f"{test[1]} is in private.txt", [before[test], after[test]], False)


def program(pool: str, kind: str, *arguments: object) -> Any:
    command = [sys.executable, "-B", str(HERE / "program.py"), pool, kind, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def readme() -> None:
    """The program that the package's README names, also with the newest PyMongo."""
    example = HERE.parents[2] / "core/c/python/examples/ping.py"
    for python, name in ((sys.executable, ""), (FOLDER / "newest/bin/python", ", newest PyMongo")):
        with endpoint() as uri:
            done = subprocess.run([python, "-B", example, uri], stdout=subprocess.PIPE, text=True, timeout=60)
        row(f"the README's program{name}", ["", done.stdout.strip()], done.stdout == "1000 pings\n")


def chaos(kind: str, callers: str) -> None:
    runs, reports, types, waits, timeouts = [], [], [], [], []
    for pool in POOLS:
        events = FOLDER / f"{kind}-{pool}.jsonl"
        with endpoint() as uri:
            runs.append(program(pool, kind, uri, SECONDS, events))
        judged = subprocess.run([CENOTE, "check", "--json", events], stdout=subprocess.PIPE, text=True)
        reports.append(json.loads(judged.stdout))
        lines = [json.loads(line) for line in events.open()]
        types.append(collections.Counter(it["type"] for it in lines))
        waits.append(sorted(it["durationMS"] for it in lines if it["type"] == "ConnectionCheckedOut"))
        timeouts.append(sum(it.get("reason") == "timeout" for it in lines))
        assert reports[-1]["events"] == types[-1].total() > 0, reports[-1]

    def both(name: str, values: list[int], passed: bool | None = None) -> None:
        row(name, [f"{value:,}" for value in values], passed)

    both(f"chaos for {SECONDS} s, {callers}: pings done", [it["done"] for it in runs], runs[1]["done"] > 0)
    both("  pings failed", [it["failed"] for it in runs])
    both("    while they waited for a connection", timeouts)
    for share, name in ((0.5, "median"), (0.999, "99.9 %"), (1, "longest")):
        row(f"  wait of a check-out, {name}", [f"{it[int((len(it) - 1) * share)]:,.1f} ms" for it in waits])
    for event in ("PoolCleared", "Created"):
        both(f"  Connection{event}", [it[f"Connection{event}"] for it in types])
    open_ended = [
        it["ConnectionCheckOutStarted"] - it["ConnectionCheckedOut"] - it["ConnectionCheckOutFailed"] for it in types
    ]
    both("  check-outs that ended without an event", open_ended, open_ended[1] == 0)
    both("  events that break a rule of CMAP", [it["broken"] for it in reports], reports[1]["good"])
    for finding in reports[1]["findings"][:10]:
        print("   ", finding)


def crowd(kind: str, callers: str) -> None:
    with endpoint() as uri:
        runs = [program(pool, kind, uri, CROWD_SECONDS) for pool in POOLS]
    title = f"32 {callers} over 8 connections for {CROWD_SECONDS} s: pings done"
    row(title, [f"{it['done']:,}" for it in runs], runs[1]["fewest"] > 0)
    row(f"  by the one of the {callers} with the fewest", [f"{it['fewest']:,}" for it in runs])
    row("  longest ping", [f"{it['longest']:,.1f} ms" for it in runs])


def costs(prefix: str, caller: str) -> None:
    figures: dict[tuple[str, int], list[dict[str, float]]] = collections.defaultdict(list)
    with endpoint() as uri:
        for _ in range(ROUNDS):
            for callers, pings in PINGS.items():
                for pool in POOLS:
                    figures[pool, callers].append(program(pool, f"{prefix}ping", uri, callers, pings))
        kinds: dict[str, list[object]] = {"": [50_000], ", with events": [20_000, os.devnull]}
        pairs = {
            name: [[program(pool, f"{prefix}pair", uri, *it)["cpu"] for pool in POOLS] for _ in range(ROUNDS)]
            for name, it in kinds.items()
        }
    for callers in PINGS:
        for kind, name in (("cpu", "CPU"), ("time", "time")):
            before, after = ([it[kind] for it in figures[pool, callers]] for pool in POOLS)
            ratio = statistics.median(b / a for a, b in zip(before, after, strict=True))
            title = f"{name} of a ping, {callers} {caller}{'s' if callers > 1 else ''} ({ratio - 1:+.0%})"
            medians = [f"{statistics.median(it):.1f} µs" for it in (before, after)]
            row(title, medians, ratio < 1.5 if kind == "cpu" else None)
    for name, rounds in pairs.items():
        medians = [f"{statistics.median(it):.1f} µs" for it in zip(*rounds, strict=True)]
        row(f"CPU of a check-out and a check-in, 1 {caller}{name}", medians)


if __name__ == "__main__":
    row("", ["PyMongo's pool", "Cenote's pool"])
    readme()
    exceptions = private()
    for kind, folders in TESTS.items():
        by_folder = zip(("test", "test/asynchronous"), folders, strict=True)
        files = [f"{folder}/test_{name}.py" for folder, names in by_folder for name in names.split()]
        own_tests(kind, files, exceptions if kind == "SecantusDB" else {})
    for prefix, caller in (("", "thread"), ("async_", "task")):
        chaos(f"{prefix}chaos", f"{caller}s")
        crowd(f"{prefix}crowd", f"{caller}s")
        costs(prefix, caller)
    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    sys.exit(not all(verdicts))
