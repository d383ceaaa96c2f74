import json, threading, time
from pymongo import monitoring

KEYS = {"connectionId": "connection_id", "reason": "reason", "interruptInUseConnections": "interrupt_connections"}

class Events(monitoring.ConnectionPoolListener):
    def __init__(self, path):
        self.file, self.lock = open(path, "w"), threading.Lock()

    def tell(self, event):
        name = "Connection" + type(event).__name__.removesuffix("Event").removeprefix("Connection")
        line = {"type": name, "address": "%s:%s" % event.address}
        line |= {key: getattr(event, of) for key, of in KEYS.items() if hasattr(event, of)}
        if hasattr(event, "duration"):
            line["durationMS"] = 1000 * event.duration
        if hasattr(event, "options"):
            line["options"] = {k: v for k, v in event.options.items() if isinstance(v, (int, float))}
        with self.lock:
            print(json.dumps({"at": time.time()} | line), file=self.file, flush=True)

    pool_created = pool_ready = pool_cleared = pool_closed = tell
    connection_created = connection_ready = connection_closed = tell
    connection_check_out_started = connection_check_out_failed = tell
    connection_checked_out = connection_checked_in = tell
