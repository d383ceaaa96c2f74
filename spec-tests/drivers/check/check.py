"""`cenote check` on the events of official drivers, in chaos for SECONDS with each pool and load: check.py SECONDS PAGE

Writes the table of PAGE. Exits with 1 if Cenote's pool breaks a rule, or a driver did nothing."""

import json
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "rust"))
from endpoints import CENOTE, endpoint  # noqa: E402

SECONDS, PAGE = sys.argv[1], Path(sys.argv[2])
MARK = "<!-- by spec-tests/drivers/check -->"
HEAD = """
|driver|load|events|check-outs|rules broken|with Cenote's pool: events|check-outs|rules broken|
|---|---|--:|--:|---|--:|--:|---|
"""
FOLDER, RUST = Path("target/drivers/check"), Path("target/drivers/rust")
PAUSES = {"tight": "0", "calm": "100"}
node = json.loads((FOLDER / "node_modules/mongodb/package.json").read_text())["version"]
rust = tomllib.loads((RUST / "before/mongodb/Cargo.toml").read_text())["package"]["version"]


def of_pymongo(kind):
    program = [sys.executable, "-B", HERE.parent / "pymongo/program.py"]
    return lambda pool, uri, events, pause: [*program, pool, kind, uri, SECONDS, events, pause]


def of_node(_, uri, events, pause):
    return ["node", FOLDER / "chaos.mjs", uri, events, SECONDS, pause]


def of_rust(pool, uri, events, pause):
    return [RUST / f"program-{pool}", "chaos", uri, events, SECONDS, pause]


BOTH = ["before", "after"]
fitting = BOTH if find_spec("cenote") else ["before"]
# The pools of each driver, and its command.
DRIVERS = {
    f"PyMongo {version('pymongo')}, threads": (fitting, of_pymongo("chaos")),
    f"PyMongo {version('pymongo')}, asyncio": (fitting, of_pymongo("async_chaos")),
    f"Node {node}": (["before"], of_node),
    f"Rust {rust}": (BOTH, of_rust),
}


def play(run):
    """The cells of a table, and whether all is well."""
    driver, load, pool = run
    events = FOLDER / f"{driver}-{load}-{pool}.jsonl"
    with endpoint() as uri, open(events.with_suffix(".log"), "w") as log:
        command = DRIVERS[driver][1](pool, uri, events, PAUSES[load])
        limit = float(SECONDS) + 120
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=True, timeout=limit)
    done = json.loads(ran.stdout)["done"]
    report = json.loads(subprocess.run([CENOTE, "check", "--json", events], stdout=subprocess.PIPE).stdout)
    counts = dict(report["rules"])
    with open(events) as lines:
        types = [json.loads(line)["type"] for line in lines]
    outcomes = types.count("ConnectionCheckedOut") + types.count("ConnectionCheckOutFailed")
    if unfinished := report["checkOuts"] - outcomes:
        counts["without outcome"] = unfinished
    broken = ", ".join(f"{rule}: {count:,}" for rule, count in counts.items()) or "0"
    cells = f"{report['events']:,}|{report['checkOuts']:,}|{broken}|"
    print(*run, cells, flush=True)
    return cells, done > 0 and (pool == "before" or (report["good"] and not unfinished))


def main():
    # Both pools of a driver beside each other; all that are calm at once.
    at_once = [[(driver, "tight", pool) for pool in pools] for driver, (pools, _) in DRIVERS.items()]
    at_once.append([(driver, "calm", pool) for driver, (pools, _) in DRIVERS.items() for pool in pools])
    results = {}
    with ThreadPoolExecutor(8) as threads:
        for runs in at_once:
            results |= zip(runs, threads.map(play, runs), strict=True)
    rows = []
    for driver in DRIVERS:
        for load in PAUSES:
            cells = [results.get((driver, load, pool), ["–|–|–|"])[0] for pool in BOTH]
            rows.append(f"|{driver}|{load}|{''.join(cells)}\n")
    text = PAGE.read_text().split(MARK)[0]
    PAGE.write_text(f"{text}{MARK}\n{SECONDS} s each:\n{HEAD}{''.join(rows)}")
    good = [is_good for _, is_good in results.values()]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    sys.exit(not all(good))


main()
