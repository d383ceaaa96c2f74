// The driver on Cenote's pool. CENOTE_URI is an endpoint's, CENOTE_BALANCER that of two routers behind one port.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { install } from "cenote/mongodb";
import * as mongodb from "mongodb";

install(mongodb);
const require = createRequire(import.meta.url);
const { CMAP_EVENTS } = require("mongodb/lib/constants.js");
const { CSOTTimeoutContext } = require("mongodb/lib/timeout.js");
const { CENOTE_URI, CENOTE_BALANCER } = process.env;

/// A client, its pool when it is ready, and the names of the pool's events from then on.
async function connected(context, options = {}, uri = CENOTE_URI) {
  const client = new mongodb.MongoClient(uri, options);
  context.after(() => client.close());
  // 6.x connects without a connection of the pool.
  await client.db("admin").command({ ping: 1 });
  const [{ pool }] = client.topology.s.servers.values();
  const events = [];
  for (const name of CMAP_EVENTS) client.on(name, (event) => events.push({ ...event, name }));
  return { client, pool, events, ping: (more) => client.db("admin").command({ ping: 1 }, more) };
}

/// Holds the only connection of a pool.
const held = (pool) => pool.checkOut({ timeoutContext: { csotEnabled: () => false } });
const namesOf = (events) => events.map(({ name }) => name);

test("a limit of the pool is no error of the network", async (context) => {
  const { pool, events, ping } = await connected(context, { maxPoolSize: 1, waitQueueTimeoutMS: 30 });
  const connection = await held(pool);
  const error = await ping().catch((thrown) => thrown);
  assert.equal(error.name, "MongoWaitQueueTimeoutError");
  assert.ok(!(error instanceof mongodb.MongoNetworkError));
  assert.match(error.cause.message, /in use 1 .* waiting 1/);
  const timeoutContext = new CSOTTimeoutContext({ timeoutMS: 30, serverSelectionTimeoutMS: 5000 });
  assert.ok(timeoutContext.serverSelectionTimeout);
  const csot = await pool.checkOut({ timeoutContext }).catch((thrown) => thrown);
  assert.ok(csot instanceof mongodb.MongoOperationTimeoutError);
  assert.equal(csot.cause.name, "MongoWaitQueueTimeoutError");
  const failed = events.filter(({ name }) => name === "connectionCheckOutFailed");
  assert.deepEqual(Array.from(failed, ({ reason }) => reason), ["timeout", "timeout"]);
  assert.ok(failed[0].durationMS >= 29 && failed[0].durationMS < 5000);
  assert.ok(!namesOf(events).includes("connectionPoolCleared"));
  pool.checkIn(connection);
  assert.equal((await ping()).ok, 1);
});

test("options that the machine refuses are named", async () => {
  const client = new mongodb.MongoClient(CENOTE_URI, { maxIdleTimeMS: 1e15 });
  const message = /^Cenote's pool: maxIdleTime 1000000000000000 is no time/;
  await assert.rejects(client.connect(), { name: "MongoInvalidArgumentError", message });
});

test("a caller that aborts leaves nothing behind", async (context) => {
  const { pool, events, ping } = await connected(context, { maxPoolSize: 1 });
  const connection = await held(pool);
  const abort = new AbortController();
  const waiting = ping({ signal: abort.signal });
  while (pool.waitQueueSize === 0) await sleep(1);
  abort.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  assert.equal(pool.waitQueueSize, 0);
  // It has no error: with one it would be the failure of a connection.
  const { name, reason, error } = events.at(-1);
  assert.deepEqual([name, reason, error], ["connectionCheckOutFailed", "connectionError", undefined]);

  // Its connection is there already, and it has not been woken.
  const late = new AbortController();
  const given = pool.checkOut({ timeoutContext: { csotEnabled: () => false }, signal: late.signal });
  pool.checkIn(connection);
  late.abort(new Error("too late"));
  await assert.rejects(given, { message: "too late" });
  assert.equal(pool.currentCheckedOutCount, 0);
  assert.equal(pool.availableConnectionCount, 1);
});

test("what is returned twice, or to another pool, changes nothing", async (context) => {
  const [one, other] = [await connected(context), await connected(context)];
  const connection = await held(one.pool);
  other.pool.checkIn(connection);
  assert.equal(one.pool.currentCheckedOutCount, 1);
  one.pool.checkIn(connection);
  one.pool.checkIn(connection);
  assert.deepEqual(namesOf(one.events), ["connectionCheckOutStarted", "connectionCheckedOut", "connectionCheckedIn"]);
  assert.equal(one.pool.availableConnectionCount, 1);
});

test("events are told to whom they are of use, whenever that is", async (context) => {
  const client = new mongodb.MongoClient(CENOTE_URI);
  context.after(() => client.close());
  const ping = () => client.db("admin").command({ ping: 1 });
  await ping();
  const told = [];
  const listen = () => client.once("connectionCheckedIn", () => told.push(told.length));
  listen();
  await ping();
  await ping();
  assert.deepEqual(told, [0]);
  client.removeAllListeners();
  listen();
  await ping();
  assert.deepEqual(told, [0, 1]);
});

test("a connection that dies idle is closed at once", async (context) => {
  const { pool, events, ping } = await connected(context);
  const connection = await held(pool);
  pool.checkIn(connection);
  connection.socket.destroy();
  await once(connection, "close");
  const closed = events.at(-1);
  assert.deepEqual([closed.name, closed.reason], ["connectionClosed", "error"]);
  assert.equal(pool.totalConnectionCount, 0);
  assert.equal((await ping()).ok, 1);
});

test("a failure of an attempt from before a clear does not clear again", async (context) => {
  const { client, pool, events } = await connected(context, { appName: "stale", maxPoolSize: 2 });
  assert.equal(pool.generation, 1);
  const admin = await connected(context);
  const data = { failCommands: ["hello", "isMaster", "ismaster"], appName: "stale", errorCode: 91 };
  Object.assign(data, { blockConnection: true, blockTimeMS: 200 });
  const connection = await held(pool);
  // The monitor stays out of it.
  client.topology.s.servers.values().next().value.monitor.close();
  await admin.client.db("admin").command({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
  const attempt = held(pool);
  await sleep(50);
  pool.clear();
  await assert.rejects(attempt, { code: 91 });
  while (pool.totalConnectionCount > 1) await sleep(5);
  assert.equal(pool.generation, 2);
  assert.equal(namesOf(events).filter((name) => name === "connectionPoolCleared").length, 1);
  pool.checkIn(connection);
});

test("a clear that interrupts ends what is under way", async (context) => {
  const { pool, ping } = await connected(context, { appName: "interrupted", maxPoolSize: 1 });
  const admin = await connected(context);
  const data = { failCommands: ["ping"], appName: "interrupted", blockConnection: true, blockTimeMS: 5000 };
  await admin.client.db("admin").command({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
  const blocked = ping();
  while (pool.currentCheckedOutCount === 0) await sleep(1);
  pool.clear({ interruptInUseConnections: true });
  await assert.rejects(blocked, { name: "PoolClearedOnNetworkError" });
  assert.equal(pool.totalConnectionCount, 0);
});

test("a listener that throws stops neither the pool nor other callers", async (context) => {
  const { client, ping } = await connected(context, { maxPoolSize: 1 });
  const thrown = new Promise((resolve) => process.setUncaughtExceptionCaptureCallback(resolve));
  context.after(() => process.setUncaughtExceptionCaptureCallback(null));
  client.once("connectionCheckedIn", () => {
    throw new Error("a listener");
  });
  const replies = await Promise.all([ping(), ping(), ping()]);
  assert.deepEqual(Array.from(replies, ({ ok }) => ok), [1, 1, 1]);
  assert.equal((await thrown).message, "a listener");
});

test("a service is cleared alone, and cursors keep their connection", async (context) => {
  const { client, pool, events } = await connected(context, { retryReads: false }, CENOTE_BALANCER);
  const things = client.db("shop").collection(`things of ${process.pid}`);
  await things.insertMany(Array.from({ length: 10 }, (_, number) => ({ number })));
  const cursor = things.find({}, { batchSize: 3 });
  await cursor.next();
  assert.equal(pool.currentCheckedOutCount, 1);
  assert.equal((await cursor.toArray()).length, 9);
  assert.equal(pool.currentCheckedOutCount, 0);
  await Promise.all([things.findOne(), things.findOne()]);
  const before = new Map(pool.serviceGenerations);
  const data = { failCommands: ["find"], closeConnection: true };
  await client.db("admin").command({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
  while (!namesOf(events).includes("connectionPoolCleared")) await things.findOne().catch(() => {});
  const cleared = events.find(({ name }) => name === "connectionPoolCleared").serviceId.toHexString();
  const changed = [...before].filter(([service, generation]) => pool.serviceGenerations.get(service) > generation);
  assert.deepEqual(changed, [[cleared, before.get(cleared)]]);
});

test("a trap fails the callers that wait", async (context) => {
  const { Instance } = WebAssembly;
  let traps = false;
  WebAssembly.Instance = class {
    constructor(module) {
      const { exports } = new Instance(module);
      const trap = (...given) => {
        if (traps) throw new WebAssembly.RuntimeError("unreachable");
        return exports.cenote_check_in(...given);
      };
      this.exports = { ...exports, cenote_check_in: trap };
    }
  };
  context.after(() => (WebAssembly.Instance = Instance));
  const { pool } = await connected(context, { maxPoolSize: 1 });
  const connection = await held(pool);
  const waiting = held(pool);
  traps = true;
  pool.checkIn(connection);
  await assert.rejects(waiting, /the module trapped \(unreachable\)/);
  await assert.rejects(held(pool), /the module trapped/);
  assert.equal(pool.waitQueueSize, 0);
  assert.ok(connection.closed);
});

test("recordings have what happened, for their owner alone", async (context) => {
  const [trace, flightRecorder] = ["trace", "flight"].map((name) => mkdtempSync(join(tmpdir(), `cenote-js-${name}-`)));
  install(mongodb, { trace, flightRecorder });
  const recorded = await connected(context, { maxPoolSize: 1, waitQueueTimeoutMS: 20 });
  install(mongodb, { trace: null });
  const { pool, ping } = await connected(context, { maxPoolSize: 1, waitQueueTimeoutMS: 20 });
  install(mongodb, { flightRecorder: null });
  const connection = await held(pool);
  const [first, second] = await Promise.all([ping(), ping()].map((it) => it.catch((error) => error.cause.message)));
  assert.doesNotMatch(second, /story/);
  pool.checkIn(connection);

  // What led to a time-out is there at once, and what comes after the end of the client as well.
  const late = await held(recorded.pool);
  const path = await recorded.ping().catch((error) => error.cause.message.split("; recorded in ").at(1));
  assert.ok(statSync(path).size > 0);
  await recorded.client.close();
  const size = statSync(path).size;
  recorded.pool.checkIn(late);
  assert.ok(statSync(path).size > size);
  const written = [trace, flightRecorder].map((folder) => readdirSync(folder).map((name) => join(folder, name)));
  assert.equal(first.split("; its story is in ").at(1), written[1][0]);
  for (const files of written) {
    assert.equal(files.length, 1);
    assert.equal(statSync(files[0]).mode & 0o777, 0o600);
    assert.match(readFileSync(files[0]).toString("latin1"), /Node\.js driver \d.*end/s);
  }
});
