// The pool's machine, in virtual time.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as cenote from "cenote";

const { ActionKind, CauseKind, CheckOutError, ClosedReason, EventKind, Pool, PoolVerdict, TextKind } = cenote;
const kindsOf = (pool) => Array.from(pool.actions(), ({ kind }) => kind);
const refusal = (code) => ({ name: "CenoteError", code: `CENOTE_${code}` });

test("a request times out with its text, in milliseconds", () => {
  const options = cenote.optionsFromUri("mongodb://db/?maxPoolSize=1&waitQueueTimeoutMS=1500");
  assert.deepEqual(options, { maxPoolSize: 1, waitQueueTimeout: 1500 });
  const pool = new Pool("db:27017", options, 0, { isReady: true });
  pool.checkOut(1, 1, 7, 60);
  const started = [...pool.actions()].at(-1);
  assert.deepEqual([started.kind, started.connection, started.deadline], [ActionKind.START_ESTABLISH, 1, 60]);
  pool.established(3.5, 1, 2 ** 32 - 1);
  const ready = [...pool.actions()].find(({ event }) => event === EventKind.CONNECTION_READY);
  assert.equal(ready.duration, 2.5);
  assert.deepEqual(pool.connection(1).since, 3.5);
  pool.checkOut(4, 2 ** 33, 8);
  assert.equal(pool.nextDeadline(), 1504);
  pool.timer(1504);
  const delivered = [...pool.actions()].at(-1);
  assert.equal(delivered.waiter, 8);
  assert.equal(delivered.error, CheckOutError.WAIT_QUEUE_TIMEOUT);
  assert.match(pool.actionText(TextKind.EXPLANATION), /in use 1/);
  assert.equal(pool.nextDeadline(), Infinity);
});

test("a service behind a load balancer has its own generation", () => {
  const service = Uint8Array.from({ length: 12 }, (_, index) => index + 1);
  const pool = new Pool("db:27017", { loadBalanced: 1 }, 0, { isReady: true });
  pool.checkOut(1, 1, 1);
  pool.handshaken(2, 1, service);
  pool.established(3, 1, 5);
  kindsOf(pool);
  assert.equal(pool.generation(service), 0);
  const reset = { text: "connection reset", payload: 77 };
  assert.equal(pool.verdict(1, reset).pool, PoolVerdict.CLEAR_SERVICE);
  pool.clear(4, reset, { service });
  const cleared = [...pool.actions()].find(({ event }) => event === EventKind.POOL_CLEARED);
  assert.deepEqual(cleared.service, service);
  assert.deepEqual([pool.generation(service), pool.generationOf(1), pool.generation(new Uint8Array(12))], [1, 0, null]);
  pool.checkInErrored(5, 1, 5, reset);
  for (const { kind, event, reason, hasCause } of pool.actions()) {
    if (event === EventKind.CONNECTION_CLOSED) assert.equal(reason, ClosedReason.ERROR);
    if (hasCause) assert.deepEqual(pool.actionCause().payload, 77);
    assert.notEqual(kind, ActionKind.DELIVER);
  }
});

test("what a server sends cannot be refused", () => {
  const pool = new Pool("db:27017", {}, 0, { isReady: true });
  pool.checkOut(1, 1, 1);
  pool.establishFailed(2, 1, { kind: CauseKind.COMMAND, code: 18, text: "a\0b", codeName: "Auth\0x", labels: ["c\0d"] });
  const failed = [...pool.actions()].at(-1);
  assert.equal(failed.error, CheckOutError.ESTABLISH_FAILED);
  assert.match(pool.actionCause().text, /a b/);
});

test("a server's error is judged by its topology version", () => {
  const pool = new Pool("db:27017", {}, 0, { isReady: true });
  pool.checkOut(1, 1, 1);
  pool.established(2, 1, 1);
  const processId = new Uint8Array(12).fill(9);
  const stepDown = { kind: CauseKind.COMMAND, code: 91, topologyVersion: { processId, counter: 5 } };
  assert.equal(pool.verdict(1, stepDown, { processId, counter: 4 }).pool, PoolVerdict.CLEAR);
  assert.equal(pool.verdict(1, stepDown, { processId, counter: 5 }).pool, PoolVerdict.KEEP);
});

test("memory that moves is followed", () => {
  const pool = new Pool("db:27017", { maxPoolSize: 1 }, 0, { isReady: true });
  for (let request = 1; request <= 30_000; request += 1) pool.checkOut(request, request, request);
  assert.equal(pool.snapshot().waiting, 29_999);
  pool.close(30_001);
  const waiters = Array.from(pool.actions()).flatMap(({ kind, waiter }) => (kind === ActionKind.DELIVER ? [waiter] : []));
  assert.deepEqual(waiters.sort((one, other) => one - other), Array.from({ length: 30_000 }, (_, index) => index + 1));
  const long = `mongodb://${"db,".repeat(50_000)}db/?minPoolSize=3`;
  assert.deepEqual(cenote.optionsFromUri(long), { minPoolSize: 3 });
});

test("what makes no sense is refused, and changes nothing", () => {
  const pool = new Pool("db:27017", { maxPoolSize: 1 }, 0, { isReady: true });
  pool.checkOut(1, 1, 1);
  pool.established(2, 1, 1);
  pool.checkIn(3, 1, 1);
  kindsOf(pool);
  const before = pool.fingerprint();
  assert.throws(() => pool.checkIn(4, 1, 1), refusal("MISUSE"));
  for (const time of [-1, NaN, "5", undefined, 1e13]) assert.throws(() => pool.timer(time), refusal("BAD_VALUE"));
  for (const request of [-1, 1.5, 2 ** 53, "2"]) assert.throws(() => pool.checkOut(5, request, 1), refusal("BAD_VALUE"));
  for (const waiter of [-1, 2 ** 32]) assert.throws(() => pool.checkOut(5, 2, waiter), refusal("BAD_VALUE"));
  assert.throws(() => pool.clear(5, { text: "x" }, { service: new Uint8Array(11) }), refusal("BAD_VALUE"));
  assert.throws(() => pool.setOptions(5, { maxPoolSise: 1 }), refusal("BAD_OPTIONS"));
  assert.throws(() => new Pool("db:27017", { minPoolSize: 2, maxPoolSize: 1, maxConnecting: 0 }, 0), refusal("BAD_OPTIONS"));
  assert.throws(() => new Pool("a\0b", {}, 0), refusal("BAD_TEXT"));
  assert.throws(() => pool.traceRead(), refusal("NOTHING"));
  assert.equal(pool.fingerprint(), before);
  pool.free();
  assert.throws(() => pool.timer(6), refusal("BAD_HANDLE"));
});

test("a trap ends its pool alone", () => {
  const Instance = WebAssembly.Instance;
  const trapping = class {
    constructor(module) {
      const trap = () => {
        throw new WebAssembly.RuntimeError("unreachable");
      };
      this.exports = { ...new Instance(module).exports, cenote_timer: trap };
    }
  };
  WebAssembly.Instance = trapping;
  const broken = new Pool("db:27017", {}, 0);
  WebAssembly.Instance = Instance;
  const whole = new Pool("db:27017", {}, 0);
  assert.throws(() => broken.timer(1), refusal("TRAPPED"));
  assert.throws(() => broken.snapshot(), refusal("TRAPPED"));
  whole.timer(1);
  assert.equal(whole.snapshot().total, 0);
});
