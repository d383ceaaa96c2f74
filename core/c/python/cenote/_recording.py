"""Recordings of PyMongo's pools."""

import itertools
import logging
import os
import time
from datetime import datetime, timezone
from pathlib import Path

import pymongo
from pymongo.lock import _create_lock

from ._pool import Pool

_numbers = itertools.count(1)
_logger = logging.getLogger("cenote")


class Recording:
    """What happens to a pool, in a new file of a folder, from now on."""

    def __init__(self, machine: Pool, folder: Path) -> None:
        begin = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        self._path = folder / f"cenote-{begin}Z-{os.getpid()}-{next(_numbers)}-recording.bson"
        # Without a buffer, of which a forked child would have a copy.
        self._file = open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)
        self._machine = machine
        # Nothing more is recorded.
        self._is_over = False
        self._has_failed = False
        # Held while the next part is taken and written.
        self.lock = _create_lock()
        origin = (time.time_ns() - time.monotonic_ns()) // 1_000_000
        machine.trace_describe(origin, f"PyMongo {pymongo.version}")
        machine.trace_start()

    @classmethod
    def begin(cls, machine: Pool, folder: Path) -> "Recording | None":
        """If there can be a file."""
        try:
            return cls(machine, folder)
        except OSError as error:
            _logger.warning("no trace can be written: %s", error)
            return None

    def take(self, is_over: bool) -> bytes:
        """What is new. The caller holds the lock of the machine."""
        if self._is_over:
            return b""
        if is_over or self._has_failed:
            self._is_over = True
            self._machine.trace_stop()
        return b"".join(iter(self._machine.trace_read, b""))

    def write(self, part: bytes) -> None:
        """Without the lock of the machine."""
        rest = memoryview(part)
        try:
            while rest and not self._has_failed:
                rest = rest[self._file.write(rest) :]
            if self._is_over:
                self._file.close()
        except OSError as error:
            _logger.warning("no trace can be written to %s: %s", self._path, error)
            self._has_failed = True
