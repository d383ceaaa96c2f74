"""The driver's own tests, with its own pool and with Cenote's, each test with an endpoint of its own. One that passes
before and does not pass after is a failure: own_tests.py BEFORE AFTER SPEC, the programs and the folder of test files."""

import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from endpoints import endpoint

PATIENCE = 30  # Seconds for a test; those that need another server than the endpoint wait that long.
AT_A_TIME = 4  # Tests mostly wait.
POOLS = ["before", "after"]
PROGRAMS = dict(zip(POOLS, sys.argv[1:3]))
SPEC = pathlib.Path(sys.argv[3])
PARTS = {
    "connection pool": r"cmap::test::(?!cmap_spec_tests)",
    "SDAM": r"sdam::(?!srv_polling)|test::spec::sdam::",
    "transactions, sessions, retries, step-down": r"client::session::"
    r"|test::spec::(transactions|sessions|retryable_reads|retryable_writes|connection_stepdown)::",
    "client": r"test::client::",
}
verdicts = []


@dataclass
class Test:
    name: str
    function: str
    topology: list = field(default_factory=lambda: ["--topology", "replica-set"])
    uri_options: str = ""
    environment: dict = field(default_factory=dict)

    def passes(self, pool):
        command = [PROGRAMS[pool], "--exact", self.function, "--include-ignored"]
        with endpoint(*self.topology) as uri:
            if self.uri_options:
                uri += ("&" if "?" in uri else "?") + self.uri_options
            environment = os.environ | self.environment
            # Test files are in ../spec of the package.
            environment |= {"MONGODB_URI": uri, "CARGO_MANIFEST_DIR": str(SPEC.parent / "driver")}
            environment |= {"SINGLE_MONGOS_LB_URI": uri, "MULTI_MONGOS_LB_URI": uri}
            try:
                done = subprocess.run(
                    command, env=environment, timeout=PATIENCE, capture_output=True, text=True
                )
            except subprocess.TimeoutExpired:
                return False
        return "test result: ok. 1 passed" in done.stdout


def compare(title, tests):
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        before, after = (list(threads.map(lambda test: test.passes(pool), tests)) for pool in POOLS)
    print(f"{title:<58} {f'{sum(before)} of {len(tests)}':>16} {f'{sum(after)} of {len(tests)}':>16}")
    for test, passed_before, passed_after in zip(tests, before, after):
        if passed_after and not passed_before:
            print(f"    only with Cenote's pool: {test.name}")
        # What passed before gets a second try: some tests race with the machine.
        lost = passed_before and not passed_after and not test.passes("after")
        if lost:
            print(f"    FAILS with Cenote's pool: {test.name}")
        verdicts.append(not lost)
    sys.stdout.flush()


def files(folder, function, **rest):
    """A test for each of the files, which the driver's runner plays one by one."""
    tests = []
    for path in sorted((SPEC / folder).glob("*.json")):
        test = Test(path.name, function, **rest)
        test.environment = test.environment | {"TEST_FILE": path.name}
        # The runner overlooks this option.
        name = json.loads(path.read_text()).get("poolOptions", {}).get("appName")
        test.uri_options = f"appName={name}" if name else ""
        tests.append(test)
    return tests


def main():
    print(f"{'the driver’s own tests that pass':<58} {'driver’s pool':>16} {'Cenote’s pool':>16}")
    folder, function = "connection-monitoring-and-pooling/cmap-format", "cmap::test::cmap_spec_tests"
    compare("CMAP files", files(folder, function))
    skip_nothing = {"SKIP_NOTHING": "1"}
    compare("  with those that the driver skips", files(folder, function, environment=skip_nothing))
    balanced = ["--load-balanced", "2"]
    function = "test::spec::load_balancers::run_unified"
    compare("load-balancer files", files("load-balancers", function, topology=balanced))
    listed = subprocess.run(
        [PROGRAMS["after"], "--list"], capture_output=True, text=True, check=True
    ).stdout
    functions = re.findall(r"^(\S+): test$", listed, re.M)
    for part, pattern in PARTS.items():
        chosen = [name for name in functions if re.match(pattern, name)]
        assert chosen, f"there is no test of {part}"
        compare(part, [Test(name, name) for name in chosen])
    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    sys.exit(not all(verdicts))


main()
