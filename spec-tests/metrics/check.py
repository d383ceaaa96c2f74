"""Tries docs/metrics with a real Prometheus: each alert fires for the pools that it is for and for no other, each query
of the dashboard has data, and docs/metrics.md names exactly the metrics that there are. Minutes in the rules become
seconds, so that this takes less than one.

    check.py PROGRAM    that serves the metrics of pools in trouble: the example `prometheus`
"""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

DOCS = pathlib.Path("docs")
POOL = "db_client_connection_pool_name"
# Alerts, and the pools of the program for which they fire. None is for the pool `calm`.
EXPECTED = {
    "CenoteRequestWaitsLong": {"small"},
    "CenoteRequestsTimeOut": {"small"},
    "CenotePoolFull": {"small"},
    "CenoteConnectionHeldLong": {"leak"},
    "CenotePoolClearedOften": {"cleared"},
    "CenoteOpeningFails": {"refused"},
    "CenoteOpeningSlow": {"slow"},
}
SECONDS_MAX = 100


def main():
    rules = (DOCS / "metrics/alerts.yml").read_text()
    queries = dashboard_queries()
    unknown = set(re.findall(r"alert: (\w+)", rules)) ^ EXPECTED.keys()
    assert not unknown, f"these alerts are only here or only in alerts.yml: {unknown}"
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        metrics, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
        start(stack, [sys.argv[1], metrics])
        (folder / "alerts.yml").write_text(minutes_as_seconds(rules))
        (folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: [alerts.yml]
scrape_configs: [{{job_name: example, static_configs: [{{targets: ['{metrics}']}}]}}]
""")
        start(stack, ["prometheus", f"--config.file={folder}/prometheus.yml", "--log.level=warn",
                      f"--storage.tsdb.path={folder}/data", f"--web.listen-address={api}"])
        wait_for_alerts(api)
        check_queries(api, queries)
        check_names(api, rules, queries)


def minutes_as_seconds(rules):
    return re.sub(r"\* 60\b", "* 1", re.sub(r"\b(\d+)m\b", r"\1s", rules))


def dashboard_queries():
    dashboard = json.loads((DOCS / "metrics/dashboard.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    return [target["expr"].replace("$__rate_interval", "10s").replace("$pool", ".*")
            for target in targets]


def wait_for_alerts(api):
    began, firing = time.monotonic(), None
    while firing != EXPECTED:
        if time.monotonic() - began > SECONDS_MAX:
            sys.exit(f"after {SECONDS_MAX} s these alerts fire: {firing}, and not {EXPECTED}")
        time.sleep(0.5)
        firing = {}
        for alert in ask(api, "alerts", {})["alerts"] if is_up(api) else []:
            if alert["state"] == "firing":
                labels = alert["labels"]
                firing.setdefault(labels["alertname"], set()).add(labels[POOL])
    print(f"{len(firing)} alerts fire as they should, after {time.monotonic() - began:.0f} s")


def check_queries(api, queries):
    for query in queries:
        values = [float(row["value"][1]) for row in ask(api, "query", {"query": query})["result"]]
        # Not a number where a pool has done nothing lately.
        assert any(value == value for value in values), f"no data for {query}"
    print(f"{len(queries)} queries of the dashboard have data")


def check_names(api, rules, queries):
    there = set(ask(api, "label/__name__/values", {}))
    ours = {name for name in there if re.match("db_client|cenote", name)}
    used = set(re.findall(r"\b(?:db_client|cenote)_\w+(?=[{\s)\[])", " ".join([rules, *queries])))
    labels = {label for row in ask(api, "series", {"match[]": '{__name__=~"db_client.*|cenote.*"}'})
              for label in row}
    assert used <= ours | labels, f"in rules or dashboard, not in Prometheus: {used - ours - labels}"
    documented = documented_names()
    base = {re.sub("_(bucket|sum|count)$", "", name) if name not in documented else name
            for name in ours}
    assert base == documented, f"only documented, or only in Prometheus: {base ^ documented}"
    print(f"{len(documented)} metrics are there as documented")


def documented_names():
    """Names as Prometheus has them."""
    rows = re.findall(r"^\| `([\w.]+)` \| ([\w -]+) \| `([^`]+)` \|", (DOCS / "metrics.md").read_text(), re.M)
    return {name.replace(".", "_") + {"s": "_seconds"}.get(unit, "") + {"counter": "_total"}.get(kind, "")
            for name, kind, unit in rows}


def is_up(api):
    try:
        urllib.request.urlopen(f"http://{api}/-/ready", timeout=5).close()
    except (urllib.error.URLError, ConnectionError):
        return False
    return True


def ask(api, what, parameters):
    url = f"http://{api}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


def start(stack, command):
    process = stack.enter_context(subprocess.Popen(command))
    stack.callback(process.terminate)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
