"""Runs the same program with both drivers, program-before and program-after in FOLDER, against `cenote endpoint`, and
prints what they did beside each other. Exits with 1 if the driver with Cenote's pool fails: compare.py FOLDER"""

import collections
import json
import pathlib
import subprocess
import sys

from endpoints import CENOTE, endpoint

POOLS = ["before", "after"]
CHAOS_SECONDS = 8
ROUNDS = 7
PINGS = {1: 20_000, 8: 3_000, 64: 400, 512: 50}
folder = pathlib.Path(sys.argv[1])
verdicts = []


def run(pool, uri, kind, *arguments):
    """The figures of one run of the program."""
    command = [folder / f"program-{pool}", kind, uri, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def row(name, before, after, passed=None):
    """One line of the table; without a verdict it only informs."""
    verdict = {None: "", True: "passed", False: "FAILED"}[passed]
    print(f"{name:<58} {before:>16} {after:>16}  {verdict}".rstrip(), flush=True)
    if passed is not None:
        verdicts.append(passed)


def judged(path):
    """What the checker finds, and how many events there are of each type."""
    done = subprocess.run([CENOTE, "check", "--json", path], stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout)
    with open(path) as lines:
        types = collections.Counter(json.loads(line)["type"] for line in lines)
    assert report["events"] == types.total() > 0, report
    return report, types


def with_events(options, kind, *arguments):
    """Both runs, with what became of their events."""
    runs = []
    for pool in POOLS:
        path = folder / f"{kind}-{pool}.jsonl"
        with endpoint(*options) as uri:
            figures = run(pool, uri, kind, path, *arguments)
        runs.append((figures, *judged(path)))
    return runs


def without_end(types):
    ends = types["ConnectionCheckedOut"] + types["ConnectionCheckOutFailed"]
    return types["ConnectionCheckOutStarted"] - ends


def thousands(number):
    return f"{number:,}"


def main():
    row("", "driver's pool", "Cenote's pool")

    everything = 64 * 100
    for name, options in [("", []), (", by TLS, after SCRAM", ["--tls", "--auth", "app:pencil"])]:
        (before, report, _), (after, report_after, _) = with_events(options, "work")
        row(f"pings, inserts, finds of 64 tasks{name}", thousands(before["rounds"]), thousands(after["rounds"]),
            before["rounds"] == after["rounds"] == everything)
        row("  events that break a rule of CMAP",
            thousands(report["broken"]), thousands(report_after["broken"]), report_after["good"])

    (before, report, types), (after, report_after, types_after) = with_events([], "chaos", CHAOS_SECONDS)
    row(f"chaos for {CHAOS_SECONDS} s: pings done", thousands(before["done"]), thousands(after["done"]), after["done"] > 0)
    row("  pings given up", thousands(before["given_up"]), thousands(after["given_up"]))
    row("  pings failed", thousands(before["failed"]), thousands(after["failed"]))
    for name in ["PoolCleared", "Created"]:
        row(f"  Connection{name}", thousands(types[f"Connection{name}"]), thousands(types_after[f"Connection{name}"]))
    row("  check-outs that ended without an event",
        thousands(without_end(types)), thousands(without_end(types_after)), without_end(types_after) == 0)
    row("  events that break a rule of CMAP",
        thousands(report["broken"]), thousands(report_after["broken"]), report_after["good"])
    for finding in report_after["findings"][:10]:
        print("   ", finding)

    waits = []
    for pool in POOLS:
        with endpoint() as uri:
            waits.append(run(pool, uri, "waiter")["waited_ms"])
    row("wait for a free connection, behind 16 that gave up",
        *(f"{wait:,.2f} ms" for wait in waits), waits[1] < 500)

    costs = {(pool, tasks): [] for pool in POOLS for tasks in PINGS}
    with endpoint() as uri:
        for _ in range(ROUNDS):
            for pool, tasks in costs:
                costs[pool, tasks].append(run(pool, uri, "pings", tasks, PINGS[tasks])["cpu"])
    for tasks in PINGS:
        # The smallest: what else runs on the machine only adds.
        before, after = (min(costs[pool, tasks]) for pool in POOLS)
        row(f"CPU of a ping, {tasks} task{'s' if tasks > 1 else ''} ({after / before - 1:+.0%})",
            f"{before:.1f} µs", f"{after:.1f} µs", after / before < 1.5)

    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    sys.exit(not all(verdicts))


main()
