"""The typed layer: one connection is made, used and closed, and each mistake is an error."""

import unittest

import cenote
from cenote import ActionKind, CheckOutError, ClosedReason, EventKind, FailedReason, PoolStatus, Status


class Machine(unittest.TestCase):
    def setUp(self) -> None:
        self.pool = cenote.Pool("db.example.com:27017", cenote.Options(max_pool_size=1), 0)

    def kinds(self) -> list[int]:
        return [action.event or action.kind for action in self.pool.actions()]

    def test_a_connection_is_made_used_and_closed(self) -> None:
        self.pool.ready(1)
        self.pool.check_out(2, 1, 11)
        *_, start = self.pool.actions()
        self.assertEqual((start.kind, start.connection, start.owner), (ActionKind.START_ESTABLISH, 1, 1))
        self.assertFalse(start.background)
        self.pool.established(3, 1, 77)
        *_, delivered = self.pool.actions()
        self.assertEqual((delivered.kind, delivered.waiter, delivered.payload), (ActionKind.DELIVER, 11, 77))
        self.assertEqual((self.pool.snapshot().in_use, self.pool.next_available()), (1, None))
        self.pool.check_in(4, 1, 77)
        self.assertEqual((self.kinds(), self.pool.next_available()), ([EventKind.CHECKED_IN], (1, 77)))
        self.pool.close(5)
        self.assertEqual([it.payload for it in self.pool.actions() if it.kind == ActionKind.CLOSE_SOCKET], [77])

    def test_a_failure_has_its_texts(self) -> None:
        self.pool.ready(1)
        self.pool.check_out(2, 1, 11)
        list(self.pool.actions())
        cause = cenote.Cause("connection refused\0", cenote.CauseStage.TCP)
        self.assertIn("connection refused", str(cause))
        self.pool.establish_failed(3, 1, cause)
        texts = [
            (action.error, self.pool.action_text(cenote.TextKind.MESSAGE))
            for action in self.pool.actions()
            if action.kind == ActionKind.DELIVER
        ]
        self.assertEqual([error for error, _ in texts], [CheckOutError.ESTABLISH_FAILED])
        self.assertIn("connection refused", texts[0][1])

    def test_kinds_and_reasons_are_enumerators(self) -> None:
        self.pool.ready(1)
        self.pool.check_out(2, 1, 11)
        self.pool.cancel(3, 1)
        self.pool.close(4)
        actions = [action.copy() for action in self.pool.actions()]
        kinds = {type(it) for action in actions for it in (action.kind, action.event, action.error)}
        self.assertEqual(kinds, {ActionKind, EventKind, CheckOutError})
        reasons = [repr(action.reason) for action in actions if action.reason is not None]
        self.assertEqual(reasons, [repr(FailedReason.CONNECTION_ERROR), repr(ClosedReason.POOL_CLOSED)])
        self.assertIs(self.pool.snapshot().status, PoolStatus.CLOSED)

    def test_a_pool_that_is_born_ready_fills_itself(self) -> None:
        self.pool = cenote.Pool("db:1", cenote.Options(min_pool_size=1), 0, is_ready=True)
        events = [EventKind.POOL_CREATED, EventKind.CONNECTION_CREATED]
        self.assertEqual(self.kinds(), [*events, ActionKind.START_ESTABLISH])
        self.assertFalse(self.pool.is_filled())
        self.pool.established(1, 1, 7)
        self.assertTrue(self.pool.is_filled())

    def test_a_trace_is_recorded(self) -> None:
        self.pool.trace_describe(1_700_000_000_000, "shop 1.2")
        self.pool.trace_start()
        self.pool.ready(1)
        self.pool.enter_stage(2, 1, cenote.CauseStage.TLS_IO)
        self.pool.trace_stop()
        trace = self.pool.trace_read()
        self.assertGreater(len(trace), 100)
        for told in (b"tlsIo", b"shop 1.2", (1_700_000_000_000).to_bytes(8, "little")):
            self.assertIn(told, trace)

    def test_mistakes_are_errors(self) -> None:
        def status(call: object, *arguments: object) -> Status:
            assert callable(call)
            with self.assertRaises(cenote.Error) as raised:
                call(*arguments)
            return raised.exception.status

        self.assertEqual(status(self.pool.check_in, 1, 5, 5), Status.MISUSE)
        self.assertEqual(status(self.pool.check_out, 1, 1, 1, cenote.NEVER, 9), Status.BAD_VALUE)
        self.assertEqual(status(cenote.Options.from_uri, "http://x"), Status.BAD_TEXT)
        self.assertEqual(status(cenote.Pool, "db:0", cenote.Options(), 0), Status.BAD_TEXT)
        few = cenote.Options(max_pool_size=1, min_pool_size=2)
        self.assertEqual(status(cenote.Pool, "db:1", few, 0), Status.BAD_OPTIONS)
        with self.assertRaises(TypeError):
            cenote.Options(max_pool=1)
        cause = cenote.Cause("gone")
        for call in (
            lambda: self.pool.ready(-1),
            lambda: self.pool.check_out(1, 1, 1, -1),
            lambda: self.pool.check_out(1, 1, 1, 1, 2**32),  # type: ignore[arg-type]
            lambda: self.pool.check_in(1, 2**64, 5),
            lambda: self.pool.check_in(1, 1, -1),
            lambda: self.pool.action_text(99),  # type: ignore[arg-type]
            lambda: self.pool.clear(1, cause, service=b"short"),
            lambda: self.pool.handshaken(1, 1, b"1234567890123"),
            lambda: self.pool.trace_read(-1),
            lambda: cenote.Cause(after=-1),
            lambda: cenote.Cause(code=2**31),
            lambda: cenote.Cause(stage=99),  # type: ignore[arg-type]
            lambda: cenote.Cause(kind=2**32),  # type: ignore[arg-type]
            lambda: cenote.Options(max_pool_size=2**63),
            lambda: setattr(few, "max_pool_size", 2**64),
        ):
            self.assertEqual(status(call), Status.BAD_VALUE)
        self.assertEqual(status(cenote.Pool, "db:1\0.example.com", few, 0), Status.BAD_TEXT)
        self.assertEqual(status(cenote.Options.from_uri, "mongodb://\udc80"), Status.NOT_UTF8)
        for wrong in (
            lambda: self.pool.ready("1"),  # type: ignore[arg-type]
            lambda: self.pool.check_out(1, 1, 1.5),  # type: ignore[arg-type]
            lambda: self.pool.handshaken(1, 1, "123456789012"),  # type: ignore[arg-type]
            lambda: cenote.Options(max_pool_size="1"),  # type: ignore[arg-type]
        ):
            self.assertRaises(TypeError, wrong)
        self.assertEqual(repr(cause), f"<cenote.Cause: {cause}>")
        self.assertIn("<cenote.Pool PAUSED: generation 0, total 0, ", repr(self.pool))
        self.assertIsNone(self.pool.generation(b"123456789012"))
        self.assertIsNone(self.pool.connection(1))


if __name__ == "__main__":
    unittest.main()
