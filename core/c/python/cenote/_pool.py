"""A typed layer over libcenote. The names, rules and errors are those of cenote.h."""

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from . import _abi
from ._abi import CauseKind, CauseStage, ClosedReason, EventKind, FailedReason, Purpose, Status, TextKind

NEVER = 2**64 - 1
"""No deadline; as a time, the end of it."""

NO_MAINTENANCE = -2
"""As ``pause_after_failure``: the pool never runs maintenance."""

_NOT_SET = -1
_SUFFIX = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
# The calls take less than a microsecond and run no Python: it does not pay to release the interpreter's lock around them, and
# no fork can happen in the middle of one.
_library = ctypes.PyDLL(str(Path(__file__).with_name(f"libcenote.{_SUFFIX}")))


_WORD = 8 * ctypes.sizeof(ctypes.c_size_t)
_BITS = {ctypes.c_uint32: 32, ctypes.c_uint64: 64, ctypes.c_size_t: _WORD}


def _unsigned(*values: int, bits: int = 64) -> None:
    """Refuses numbers that do not fit, where ctypes takes the lowest bits."""
    for value in values:
        if value >> bits:
            raise Error(Status.BAD_VALUE, f"{value} is not from 0 to 2**{bits} - 1")


def _ranged(call: Any, arguments: list[Any]) -> Any:
    """A function of C that refuses numbers that do not fit."""
    bits = [(place, _BITS[kind]) for place, kind in enumerate(arguments) if kind in _BITS]

    def ranged(*given: Any) -> Any:
        for place, size in bits:
            _unsigned(given[place], bits=size)
        return call(*given)

    return ranged if bits else call


# These look at their numbers themselves, all at once, because they are called all the time.
_FREQUENT = {"cenote_check_out", "cenote_check_in"}
for _name, _arguments in _abi.FUNCTIONS.items():
    _call = getattr(_library, _name)
    _call.argtypes, _call.restype = _arguments, ctypes.c_uint32
    setattr(_library, _name, _call if _name in _FREQUENT else _ranged(_call, _arguments))
_check_out, _check_in, _next_action = _library.cenote_check_out, _library.cenote_check_in, _library.cenote_next_action

_S = TypeVar("_S", bound=ctypes.Structure)


class Error(Exception):
    """A call was refused, and changed nothing: a number is out of range or of no enum (``BAD_VALUE``), the input makes no sense in
    the present state (``MISUSE``), or whatever else ``status`` says. A value of a wrong type is a `TypeError` instead."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(f"{text} ({status.name})")
        self.status = status


def _text(call: Any, *arguments: Any) -> str:
    """A text of any length."""
    length = ctypes.c_size_t()
    status = call(*arguments, None, 0, ctypes.byref(length))
    if status != Status.TRUNCATED:
        _check(status)
    buffer = ctypes.create_string_buffer(length.value + 1)
    _check(call(*arguments, buffer, len(buffer), None))
    return buffer.value.decode()


def _check(status: int) -> None:
    if status:
        raise Error(Status(status), _text(_library.cenote_last_error))


def _sized(structure: type[_S]) -> _S:
    return structure(size=ctypes.sizeof(structure))


def _bytes(text: str) -> bytes:
    """For C, whose texts end at their first zero byte."""
    if "\0" in text:
        raise Error(Status.BAD_TEXT, "a text with a zero byte")
    return text.encode(errors="surrogatepass")


def _service(service: bytes | None) -> bytes | None:
    if service is None:
        return None
    if len(service) != 12:
        raise Error(Status.BAD_VALUE, f"a service has 12 bytes, not {len(service)}")
    return bytes(service)


class Options(_abi.Options):
    """The options of a pool by their names in cenote.h; times in nanoseconds. Those that are not given have their defaults."""

    def __init__(self, **given: int) -> None:
        names = [name for name, *_ in _abi.Options._fields_][2:]
        if unknown := given.keys() - set(names):
            raise TypeError(f"no such option: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
        super().__init__(size=ctypes.sizeof(_abi.Options), **(dict.fromkeys(names, _NOT_SET) | given))

    def __setattr__(self, name: str, value: int) -> None:
        if not -(2**63) <= value < 2**63:
            raise Error(Status.BAD_VALUE, f"{name} {value} is not from -2**63 to 2**63 - 1")
        super().__setattr__(name, value)

    @classmethod
    def from_uri(cls, uri: str) -> "Options":
        """Reads the options from a connection string."""
        options = cls()
        _check(_library.cenote_options_from_uri(_bytes(uri), ctypes.byref(options)))
        return options


_REASONS: dict[EventKind, type[ClosedReason | FailedReason]] = {
    EventKind.CONNECTION_CLOSED: ClosedReason,
    EventKind.CHECK_OUT_FAILED: FailedReason,
}


class Action(_abi.Action):
    """An action: the fields of ``cenote_action``."""

    def __init__(self) -> None:
        self.size = ctypes.sizeof(self)
        self.address = ctypes.addressof(self)

    def __repr__(self) -> str:
        return f"<cenote.Action {self.kind.name}>"

    @property
    def reason(self) -> ClosedReason | FailedReason | None:  # type: ignore[override]
        """Why, if it is an event that says why."""
        kind = _REASONS.get(self.event)
        return kind(super().reason) if kind is not None else None

    def copy(self) -> "Action":
        """One that stays as it is when the next action is pulled into this one."""
        return Action.from_buffer_copy(self)


class Cause:
    """Why a connection could not be established, or failed in use. Never changes; any thread can use it."""

    def __init__(
        self,
        text: str = "",
        stage: CauseStage = CauseStage.OPERATION,
        kind: CauseKind = CauseKind.NETWORK,
        *,
        code: int | None = None,
        code_name: str | None = None,
        labels: tuple[str, ...] = (),
        after: int = 0,
    ) -> None:
        self._handle = ctypes.c_void_p()
        _unsigned(after)
        _unsigned(stage, kind, bits=32)
        if code is not None and not -(2**31) <= code < 2**31:
            raise Error(Status.BAD_VALUE, f"code {code} is not from -2**31 to 2**31 - 1")
        options = _sized(_abi.CauseOptions)
        options.stage, options.kind, options.after = stage, kind, after
        options.has_code, options.code = code is not None, code or 0
        # A text of C ends at its first zero byte.
        options.text = text.replace("\0", " ").encode(errors="replace")
        options.code_name = _bytes(code_name) if code_name is not None else None
        options.labels = _bytes(" ".join(labels))
        _check(_library.cenote_cause_new(ctypes.byref(options), ctypes.byref(self._handle)))

    def __del__(self, _release: Any = _library.cenote_cause_release) -> None:
        _release(self._handle)

    def __str__(self) -> str:
        return _text(_library.cenote_cause_text, self._handle, TextKind.MESSAGE)

    def __repr__(self) -> str:
        return f"<cenote.Cause: {self}>"


class Pool:
    """A pool's state machine: tell it what happened, with the time in nanoseconds, then perform the `actions`.

    Take a lock of your own around each call. `Error` says which rule a call broke."""

    def __init__(self, address: str, options: Options, now: int, *, is_ready: bool = False) -> None:
        """A pool for the server at ``address`` (``host:port``): paused and empty, or with ``is_ready`` born ready."""
        handle = ctypes.c_void_p()
        make = _library.cenote_pool_new_ready if is_ready else _library.cenote_pool_new
        _check(make(_bytes(address), ctypes.byref(options), now, ctypes.byref(handle)))
        self._handle: int = handle.value or 0
        self._number = ctypes.c_uint64()
        self._payload = ctypes.c_size_t()
        self._numbers = ctypes.addressof(self._number), ctypes.addressof(self._payload)

    def __del__(self, _free: Any = _library.cenote_pool_free) -> None:
        if hasattr(self, "_handle"):
            _free(self._handle)

    # What happened.

    def check_out(
        self, now: int, request: int, waiter: int, deadline: int = NEVER, purpose: Purpose = Purpose.OTHER
    ) -> None:
        """A caller wants a connection. ``request`` is greater than every one before it; ``waiter`` comes back with the outcome."""
        if (now | request | deadline) >> 64 or waiter >> _WORD or purpose >> 32:
            _unsigned(now, request, deadline)
            _unsigned(waiter, bits=_WORD)
            _unsigned(purpose, bits=32)
        if status := _check_out(self._handle, now, request, waiter, deadline, purpose):
            _check(status)

    def cancel(self, now: int, request: int) -> None:
        """A caller cancelled its check-out. Does nothing if the request has its outcome."""
        _check(_library.cenote_cancel(self._handle, now, request))

    def check_in(self, now: int, connection: int, payload: int) -> None:
        """A connection comes back and may be used again."""
        if (now | connection) >> 64 or payload >> _WORD:
            _unsigned(now, connection)
            _unsigned(payload, bits=_WORD)
        if status := _check_in(self._handle, now, connection, payload):
            _check(status)

    def check_in_errored(self, now: int, connection: int, payload: int, cause: Cause) -> None:
        """A connection comes back and must not be used again."""
        _check(_library.cenote_check_in_errored(self._handle, now, connection, payload, cause._handle))

    def repurpose(self, now: int, connection: int, purpose: Purpose) -> None:
        """A connection in use serves another purpose from now on."""
        _check(_library.cenote_repurpose(self._handle, now, connection, purpose))

    def handshaken(self, now: int, connection: int, service: bytes | None = None) -> None:
        """Hello is done, authentication is not. Behind a load balancer required, with the 12 bytes of ``serviceId``."""
        _check(_library.cenote_handshaken(self._handle, now, connection, _service(service)))

    def handshaken_late(self, now: int, connection: int, service: bytes | None, clears_at_hello: int) -> None:
        """The same for a hello that was done earlier, when `service_clears` gave that number."""
        late = _service(service), clears_at_hello
        _check(_library.cenote_handshaken_late(self._handle, now, connection, *late))

    def established(self, now: int, connection: int, payload: int) -> None:
        """A connection finished handshake and authentication."""
        _check(_library.cenote_established(self._handle, now, connection, payload))

    def establish_failed(self, now: int, connection: int, cause: Cause) -> None:
        """A connection could not be established."""
        _check(_library.cenote_establish_failed(self._handle, now, connection, cause._handle))

    def idle_closed_by_peer(self, now: int, connection: int, cause: Cause) -> None:
        """The peer closed an available connection."""
        _check(_library.cenote_idle_closed_by_peer(self._handle, now, connection, cause._handle))

    def retire_connections(self, now: int) -> None:
        """Credentials changed: each connection so far is closed as soon as it is not in use."""
        _check(_library.cenote_retire_connections(self._handle, now))

    def release_idle(self, now: int) -> None:
        """The process is about to be frozen: each connection that no request uses or waits for is closed."""
        _check(_library.cenote_release_idle(self._handle, now))

    def ready(self, now: int) -> None:
        """The server can be used."""
        _check(_library.cenote_ready(self._handle, now))

    def clear(self, now: int, cause: Cause, interrupt: bool = False, service: bytes | None = None) -> None:
        """Every connection so far may be broken, or those of one service behind a load balancer."""
        _check(_library.cenote_clear(self._handle, now, cause._handle, interrupt, _service(service)))

    def close(self, now: int) -> None:
        """The pool is closed, for good."""
        _check(_library.cenote_close(self._handle, now))

    def timer(self, now: int) -> None:
        """The `next_deadline` is due. Early, late or twice does no harm."""
        _check(_library.cenote_timer(self._handle, now))

    def reset_after_fork(self, now: int) -> None:
        """This process is a child of the one that made the connections."""
        _check(_library.cenote_reset_after_fork(self._handle, now))

    def set_options(self, now: int, options: Options) -> None:
        """The options change while the pool runs; those that are not set return to their defaults."""
        _check(_library.cenote_set_options(self._handle, now, ctypes.byref(options)))

    def set_events(self, wanted: bool) -> None:
        """Whether actions of kind ``EMIT_EVENT`` are made; a new pool makes them."""
        _check(_library.cenote_set_events(self._handle, wanted))

    # What to do.

    def pull(self, action: Action) -> None:
        """Pulls the next action into ``action``; its kind is ``NONE`` if there is none."""
        if status := _next_action(self._handle, action.address):
            _check(status)

    def next_action(self) -> Action | None:
        """Pulls the next action."""
        action = Action()
        self.pull(action)
        return action if action.kind else None

    def actions(self) -> Iterator[Action]:
        """Pulls actions until there is none."""
        while (action := self.next_action()) is not None:
            yield action

    def action_text(self, kind: TextKind) -> str:
        """A text of the action that was pulled last."""
        return _text(_library.cenote_action_text, self._handle, kind)

    # What one can ask.

    def snapshot(self) -> _abi.SnapshotInfo:
        """Counts, state and generation. Takes constant time."""
        snapshot = _sized(_abi.SnapshotInfo)
        _check(_library.cenote_snapshot(self._handle, ctypes.byref(snapshot)))
        return snapshot

    def connection(self, connection: int) -> _abi.ConnectionInfo | None:
        """A connection, as it is at this moment; `None` if it is closed, or never was."""
        info = _sized(_abi.ConnectionInfo)
        is_there = self._is_there(_library.cenote_connection(self._handle, connection, ctypes.byref(info)))
        return info if is_there else None

    def generation(self, service: bytes | None = None) -> int | None:
        """The pool's generation; with a service, that of the service, or `None` if no connection belongs to it."""
        status = _library.cenote_generation(self._handle, _service(service), self._numbers[0])
        return self._number.value if self._is_there(status) else None

    def service_clears(self) -> int:
        """How often a service was cleared, for `handshaken_late`."""
        _check(_library.cenote_service_clears(self._handle, self._numbers[0]))
        return self._number.value

    def generation_of(self, connection: int) -> int | None:
        """The generation of a connection; `None` if it is closed, or never was."""
        status = _library.cenote_generation_of(self._handle, connection, self._numbers[0])
        return self._number.value if self._is_there(status) else None

    def next_available(self) -> tuple[int, int] | None:
        """The connection that a check-out would get now, and its payload."""
        status = _library.cenote_next_available(self._handle, *self._numbers)
        return (self._number.value, self._payload.value) if self._is_there(status) else None

    def next_deadline(self) -> int:
        """When to call `timer` next; `NEVER` if there is nothing to wait for. To be asked again after every input."""
        _check(_library.cenote_next_deadline(self._handle, self._numbers[0], None))
        return self._number.value

    def is_filled(self) -> bool:
        """Whether as many connections are established as ``min_pool_size`` wants."""
        answer = ctypes.c_uint32()
        _check(_library.cenote_is_filled(self._handle, ctypes.byref(answer)))
        return bool(answer.value)

    def __repr__(self) -> str:
        snapshot = self.snapshot()
        counts = ", ".join(f"{name} {getattr(snapshot, name)}" for name, *_ in snapshot._fields_[2:])
        return f"<cenote.Pool {snapshot.status.name}: {counts}>"

    # Traces.

    def trace_describe(self, origin: int, program: str) -> None:
        """What the recordings that begin from now on say: the milliseconds since 1970 at time 0, and the program."""
        _check(_library.cenote_trace_describe(self._handle, origin, _bytes(program)))

    def trace_start(self, actions: bool = True) -> None:
        """Begins to record every input, and with ``actions`` every action."""
        _check(_library.cenote_trace_start(self._handle, actions))

    def enter_stage(self, now: int, connection: int, stage: CauseStage) -> None:
        """The establishment of a connection has come to a stage: for the trace."""
        _check(_library.cenote_enter_stage(self._handle, now, connection, stage))

    def trace_stop(self) -> None:
        """Ends the recording. What was not read yet can still be read."""
        _check(_library.cenote_trace_stop(self._handle))

    def trace_read(self, capacity: int = 1 << 16) -> bytes:
        """The next bytes of the trace; empty if there are none at present."""
        _unsigned(capacity, bits=32)
        buffer, length = ctypes.create_string_buffer(capacity), ctypes.c_size_t()
        _check(_library.cenote_trace_read(self._handle, buffer, capacity, ctypes.byref(length)))
        return buffer.raw[: length.value]

    @staticmethod
    def _is_there(status: int) -> bool:
        if status and status != Status.NOTHING:
            _check(status)
        return not status


__all__ = ["NEVER", "NO_MAINTENANCE", "Action", "Cause", "Error", "Options", "Pool"]
