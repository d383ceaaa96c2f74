"""Recordings of PyMongo's pools."""

import itertools
import logging
import os
import threading
from datetime import datetime, timezone
from pathlib import Path

from ._pool import Pool

_numbers = itertools.count(1)
_logger = logging.getLogger("cenote")


class Recording:
    """What happens to a pool, in a new file of a folder, from now on."""

    def __init__(self, machine: Pool, folder: Path) -> None:
        time = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        name = f"cenote-{time}Z-{os.getpid()}-{next(_numbers)}-recording.bson"
        self._file = open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._machine = machine
        self._is_over = False
        # Held while the next part is taken and written.
        self.lock = threading.Lock()
        machine.trace_start()

    def take(self, is_over: bool) -> list[bytes]:
        """What is new. The caller holds the lock of the machine."""
        if self._file.closed:
            return []
        if is_over:
            self._machine.trace_stop()
            self._is_over = True
        return [*iter(self._machine.trace_read, b"")]

    def write(self, parts: list[bytes]) -> None:
        """Without the lock of the machine."""
        if self._file.closed:
            return
        try:
            self._file.writelines(parts)
            self._file.flush()
        except OSError as error:
            _logger.warning("no trace can be written to %s: %s", self._file.name, error)
            self._is_over = True
        if self._is_over:
            self._file.close()
