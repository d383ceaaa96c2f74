"""A client of several servers, in virtual time: its monitoring sockets are bytes, and the servers' answers are made here."""

import struct
import unittest
from typing import Any

import bson
import cenote
from cenote import ClientActionKind, ClientEventKind, ServerKind, ServerSelector, Status

SECOND = 10**9
A, B = "a.example.com:27017", "b.example.com:27017"
PRIMARY = {"ok": 1, "isWritablePrimary": True, "setName": "rs0", "hosts": [A, B], "setVersion": 1}
SECONDARY = {"ok": 1, "secondary": True, "setName": "rs0", "hosts": [A, B], "setVersion": 1}
WIRE = {"minWireVersion": 0, "maxWireVersion": 25}


def reply_to(request: bytes, document: dict[str, Any]) -> bytes:
    """OP_MSG with this document, as the answer to a request."""
    body = bson.encode(document | WIRE)
    return struct.pack("<iiiiIB", 21 + len(body), 1, struct.unpack_from("<i", request, 4)[0], 2013, 0, 0) + body


class Discovery(unittest.TestCase):
    def setUp(self) -> None:
        self.client = cenote.Client("mongodb://a.example.com/?replicaSet=rs0", 0, "test", "1")
        self.seen: list[tuple[int, int]] = []
        self.numbers: dict[str, int] = {}
        self.greeted: set[tuple[int, int]] = set()
        self.texts: list[str] = []

    def perform(self, now: int, replies: dict[str, dict[str, Any]]) -> None:
        """Every socket connects at once, and says what its server says, a byte at a time."""
        while (action := self.client.next_action()) is not None:
            kind, server, socket = action.kind, action.server, action.socket
            if kind == ClientActionKind.OPEN_POOL:
                self.numbers[self.client.action_text(cenote.TextKind.ADDRESS)] = server
            elif kind == ClientActionKind.OPEN_SOCKET:
                if self.client.action_text(cenote.TextKind.ADDRESS) in replies:
                    self.client.connected(now, server, socket)
            elif kind == ClientActionKind.SEND and (server, socket) not in self.greeted:
                self.greeted.add((server, socket))
                address = next(it for it, number in self.numbers.items() if number == server)
                for byte in reply_to(self.client.action_bytes(action), replies[address]):
                    self.client.received(now, server, socket, bytes([byte]))
            elif kind == ClientActionKind.DELIVER and server == 0:
                self.texts.append(self.client.action_text(cenote.TextKind.MESSAGE))
            self.seen.append((kind, server))

    def chosen(self) -> list[int]:
        return [server for kind, server in self.seen if kind == ClientActionKind.DELIVER]

    def test_callers_get_the_members_of_a_replica_set(self) -> None:
        self.client.select(1, 1, 11, ServerSelector.PRIMARY)
        self.client.select(1, 2, 12, ServerSelector.SECONDARY)
        self.perform(2, {A: PRIMARY, B: SECONDARY})
        a, b = self.numbers[A], self.numbers[B]
        self.assertEqual(self.chosen(), [a, b])
        self.assertIn((ClientActionKind.READY_POOL, a), self.seen)
        self.assertEqual(self.client.server(b).kind, ServerKind.RS_SECONDARY)
        self.assertIn("ReplicaSetWithPrimary rs0", str(self.client))
        self.client.select(3, 3, 13, ServerSelector.NEAREST, avoided=[a])
        self.perform(3, {})
        self.assertEqual(self.chosen()[2:], [b])

    def test_a_seed_that_no_member_names_goes_at_once(self) -> None:
        version = {"topologyVersion": {"processId": bson.ObjectId(), "counter": bson.Int64(1)}}
        other = PRIMARY | version | {"hosts": [B], "me": B}
        self.perform(1, {A: other, B: other})
        a, b = self.numbers[A], self.numbers[B]
        kinds = [kind for kind, server in self.seen if server == a]
        # The one for round-trip times was asked for, too, and has its address though the server is gone.
        self.assertEqual(kinds.count(ClientActionKind.OPEN_SOCKET), kinds.count(ClientActionKind.CLOSE_SOCKET))
        self.assertGreater(kinds.count(ClientActionKind.OPEN_SOCKET), 1)
        self.assertIn(ClientActionKind.CLOSE_POOL, kinds)
        self.assertEqual(self.client.server(b).kind, ServerKind.RS_PRIMARY)

    def test_a_failed_connection_clears_its_pool(self) -> None:
        self.perform(2, {A: PRIMARY, B: SECONDARY})
        a = self.numbers[A]
        pool = cenote.Pool(A, cenote.Options(), 2, is_ready=True)
        pool.check_out(3, 1, 1)
        pool.established(3, 1, 7)
        list(pool.actions())
        cause = cenote.Cause("reset by peer")
        self.client.connection_failed(4, a, pool, 1, cause)
        kinds = []
        for action in self.client.actions():
            kinds.append(action.kind)
            if action.kind == ClientActionKind.CLEAR_POOL:
                pool.clear(4, self.client.action_cause(), action.interrupt)
        self.assertIn(ClientActionKind.CLEAR_POOL, kinds)
        pool.check_in_errored(5, 1, 7, cause)
        self.client.connection_failed(6, a, pool, 1, cause)
        self.assertEqual(list(self.client.actions()), [], "it is of an older generation")
        self.assertEqual((pool.generation(), self.client.server(a).kind), (1, ServerKind.UNKNOWN))

    def test_time_ends_what_waits(self) -> None:
        self.client.select(0, 1, 11, deadline=2 * SECOND)
        self.perform(0, {})
        # The caller, and connectTimeoutMS of the socket that never connects.
        for now, kind in [(2 * SECOND, ClientActionKind.DELIVER), (10 * SECOND, ClientActionKind.CLOSE_SOCKET)]:
            self.assertEqual(self.client.next_deadline(), now)
            self.client.timer(now - 1)
            self.assertEqual(list(self.client.actions()), [])
            self.client.timer(now)
            self.seen.clear()
            self.perform(now, {})
            self.assertIn(kind, [it for it, _ in self.seen])
        self.assertIn("there was no member for the read preference primary", self.texts[0])
        self.assertIn("timed out", str(self.client))

    def test_what_is_no_reply_closes_the_socket(self) -> None:
        *_, opened = self.client.actions()
        self.client.connected(1, opened.server, opened.socket)
        list(self.client.actions())
        self.client.received(2, opened.server, opened.socket, b"HTTP/1.1 400 Bad Request\r\n")
        events = []
        for action in self.client.actions():
            if action.event == ClientEventKind.HEARTBEAT_FAILED:
                events.append(self.client.action_text(cenote.TextKind.LOG))
                self.assertIn("hello: ", str(self.client.action_cause()))
            events.append(action.kind.name)
        self.assertIn("Heartbeat failed", events[0])
        self.assertEqual(events[-1], "CLOSE_SOCKET")
        # It is closed; what is still in the driver's hands means nothing.
        self.client.received(3, opened.server, opened.socket, b"x")
        self.client.connected(3, opened.server, opened.socket)
        self.assertEqual(list(self.client.actions()), [])

    def test_a_client_is_closed(self) -> None:
        self.client.select(1, 1, 11)
        self.client.select(1, 2, 12)
        self.client.cancel(1, 1)
        self.client.close(2)
        self.perform(2, {})
        self.assertEqual(self.texts, ["the client is closed"])
        closed = [kind for kind, _ in self.seen if kind in (ClientActionKind.CLOSE_SOCKET, ClientActionKind.CLOSE_POOL)]
        self.assertEqual(closed, [ClientActionKind.CLOSE_SOCKET, ClientActionKind.CLOSE_POOL])
        self.assertEqual(self.client.next_deadline(), cenote.NEVER)

    def test_mistakes_are_errors(self) -> None:
        def status(call: object, *arguments: object) -> Status:
            assert callable(call)
            with self.assertRaises(cenote.Error) as raised:
                call(*arguments)
            return raised.exception.status

        *_, opened = self.client.actions()
        server, socket = opened.server, opened.socket
        self.assertEqual(status(self.client.received, 1, server, socket, b"x"), Status.MISUSE)
        self.client.connected(1, server, socket)
        self.assertEqual(status(self.client.connected, 1, server, socket), Status.MISUSE)
        self.assertEqual(status(self.client.connected, 1, server, 9), Status.MISUSE)
        self.assertEqual(status(self.client.received, 1, 9, 1, b"x"), Status.MISUSE)
        self.assertEqual(status(self.client.address, 9), Status.NOTHING)
        self.assertEqual(status(self.client.select, 1, 0, 1), Status.MISUSE)
        self.assertEqual(status(self.client.select, 1, 1, 1, 9), Status.BAD_VALUE)
        self.assertEqual(status(cenote.Client, "mongodb+srv://cluster.example.com/", 0), Status.BAD_TEXT)
        self.assertEqual(status(cenote.Client, "mongodb://a/", 0, "a|b"), Status.BAD_OPTIONS)

    def test_no_text_shows_a_secret(self) -> None:
        self.assertNotIn("hunter2", repr(cenote.Client("mongodb://app:hunter2@a/", 0)))
        for wrong in ["%", "/", "?", "@", ":", "é[", "\n#"]:
            with self.assertRaises(cenote.Error) as raised:
                cenote.Client(f"mongodb://app:hunter2{wrong}hunter2@a/", 0)
            self.assertNotIn("hunter2", f"{raised.exception} {raised.exception!r}")


if __name__ == "__main__":
    unittest.main()
