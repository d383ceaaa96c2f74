"""A client of several servers: which there are, a monitor for each, server selection. The names and rules are those of cenote.h."""

import ctypes
import random
from collections.abc import Iterator, Sequence
from typing import Any

from . import _abi
from ._abi import ServerSelector, TextKind
from ._pool import NEVER, Cause, Pool, _bytes, _check, _library, _sized, _text, _unsigned


class ClientAction(_abi.ClientAction):
    """An action: the fields of ``cenote_client_action``."""

    def __init__(self) -> None:
        super().__init__(size=ctypes.sizeof(_abi.ClientAction))

    def __repr__(self) -> str:
        return f"<cenote.ClientAction {self.kind.name}>"


class Client:
    """A client's state machine: tell it what happened, with the time in nanoseconds, then perform the `actions`.

    Sockets and pools are yours. Take a lock of your own around each call. `Error` says which rule a call broke."""

    def __init__(self, uri: str, now: int, driver_name: str | None = None, driver_version: str | None = None) -> None:
        """A client of the deployment that a connection string names. Its pools have the options `Options.from_uri`."""
        handle = ctypes.c_void_p()
        name, version = (_bytes(text) if text is not None else None for text in (driver_name, driver_version))
        _check(_library.cenote_client_new(_bytes(uri), name, version, now, ctypes.byref(handle)))
        self._handle: int = handle.value or 0

    def __del__(self, _free: Any = _library.cenote_client_free) -> None:
        if hasattr(self, "_handle"):
            _free(self._handle)

    # What happened.

    def connected(self, now: int, server: int, socket: int) -> None:
        """A monitoring socket is connected, TLS included."""
        _check(_library.cenote_client_connected(self._handle, now, server, socket))

    def received(self, now: int, server: int, socket: int, data: bytes) -> None:
        """Bytes of a monitoring socket, in any cut."""
        _check(_library.cenote_client_received(self._handle, now, server, socket, bytes(data), len(data)))

    def socket_failed(self, now: int, server: int, socket: int, cause: Cause) -> None:
        """A monitoring socket could not be connected, or has failed since."""
        _check(_library.cenote_client_socket_failed(self._handle, now, server, socket, cause._handle))

    def connection_failed(self, now: int, server: int, pool: Pool, connection: int, cause: Cause) -> None:
        """A connection of a server's pool has failed. The pool and the caller hear of it after the actions that follow."""
        arguments = server, pool._handle, connection, cause._handle
        _check(_library.cenote_client_connection_failed(self._handle, now, *arguments))

    def select(
        self,
        now: int,
        request: int,
        waiter: int,
        selector: ServerSelector = ServerSelector.READ_PREFERENCE,
        deadline: int = NEVER,
        avoided: Sequence[int] = (),
        draw: int | None = None,
    ) -> None:
        """An operation wants a server. ``request`` is greater than every one before it. Without ``draw``, by which two of
        the servers that fit are drawn, that is at random."""
        _unsigned(*avoided)
        numbers = (ctypes.c_uint64 * len(avoided))(*avoided)
        drawn = random.getrandbits(64) if draw is None else draw
        arguments = selector, deadline, numbers, len(avoided), drawn
        _check(_library.cenote_client_select(self._handle, now, request, waiter, *arguments))

    def cancel(self, now: int, request: int) -> None:
        """A caller does not wait any more. Does nothing if the request has its outcome."""
        _check(_library.cenote_client_cancel(self._handle, now, request))

    def request_checks(self, now: int) -> None:
        """All servers are to be checked soon."""
        _check(_library.cenote_client_request_checks(self._handle, now))

    def timer(self, now: int) -> None:
        """The `next_deadline` is due. Early, late or twice does no harm."""
        _check(_library.cenote_client_timer(self._handle, now))

    def close(self, now: int) -> None:
        """The client is closed, for good."""
        _check(_library.cenote_client_close(self._handle, now))

    # What to do.

    def next_action(self) -> ClientAction | None:
        """Pulls the next action."""
        action = ClientAction()
        _check(_library.cenote_client_next_action(self._handle, ctypes.byref(action)))
        return action if action.kind else None

    def actions(self) -> Iterator[ClientAction]:
        """Pulls actions until there is none."""
        while (action := self.next_action()) is not None:
            yield action

    def action_bytes(self, action: ClientAction) -> bytes:
        """What is to be sent: of the action that was pulled last."""
        buffer = ctypes.create_string_buffer(action.length)
        _check(_library.cenote_client_action_bytes(self._handle, buffer, action.length, None))
        return buffer.raw

    def action_text(self, kind: TextKind) -> str:
        """A text of the action that was pulled last."""
        return _text(_library.cenote_client_action_text, self._handle, kind)

    def action_cause(self) -> Cause:
        """The cause in the action that was pulled last."""
        handle = ctypes.c_void_p()
        _check(_library.cenote_client_action_cause(self._handle, ctypes.byref(handle)))
        cause = Cause.__new__(Cause)
        cause._handle = handle
        return cause

    # What one can ask.

    def next_deadline(self) -> int:
        """When to call `timer` next; `NEVER` if there is nothing to wait for. To be asked again after every input."""
        deadline = ctypes.c_uint64()
        _check(_library.cenote_client_next_deadline(self._handle, ctypes.byref(deadline)))
        return deadline.value

    def server(self, server: int) -> _abi.ServerInfo:
        """What is known of a server."""
        info = _sized(_abi.ServerInfo)
        _check(_library.cenote_client_server(self._handle, server, ctypes.byref(info)))
        return info

    def address(self, server: int) -> str:
        """Where a server is: ``host:port``, or the path of a UNIX domain socket."""
        return _text(_library.cenote_client_address, self._handle, server)

    def __repr__(self) -> str:
        return f"<cenote.Client: {self}>"

    def __str__(self) -> str:
        return _text(_library.cenote_client_description, self._handle)
