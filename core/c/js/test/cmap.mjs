// Plays the official cmap-format files on the driver's pool class: node cmap.mjs FOLDER URI driver|cenote
//
// Prints each file that fails, and at last `N of M`. The format: spec-tests/conform plays the same on other pools.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { install } from "cenote/mongodb";
import * as mongodb from "mongodb";

const [folder, uri, whose] = process.argv.slice(2);
if (whose === "cenote") install(mongodb);
const require = createRequire(import.meta.url);
const { TimeoutContext } = require("mongodb/lib/timeout.js");
const { CMAP_EVENTS } = require("mongodb/lib/constants.js");
const { ConnectionPool } = require("mongodb/lib/cmap/connection_pool.js");

const emitterName = (name) => name[0].toLowerCase() + name.slice(1);
const fileName = (name) => name[0].toUpperCase() + name.slice(1);

/// Whether a value is what a file expects: a part of it, and 42 for anything.
function matches(expected, actual) {
  if (expected === 42 || expected === "42") return actual !== undefined && actual !== null;
  if (expected === null || typeof expected !== "object") return expected === actual;
  return Object.entries(expected).every(([key, value]) => actual !== null && matches(value, actual?.[key]));
}

class Player {
  #file;
  #pool;
  #events = [];
  #labels = new Map();
  #threads = new Map();
  #timeouts;

  constructor(file) {
    this.#file = file;
    const { backgroundThreadIntervalMS = 0, ...given } = file.poolOptions ?? {};
    const { options, s, mongoLogger } = new mongodb.MongoClient(uri, given);
    const own = { ...options, ...given, hostAddress: options.hosts[0] };
    if (backgroundThreadIntervalMS > 0) own.minPoolSizeCheckFrequencyMS = backgroundThreadIntervalMS;
    if (backgroundThreadIntervalMS < 0) own.minPoolSizeCheckFrequencyMS = 2 ** 31 - 1;
    const server = { topology: { client: { options, s, mongoLogger } }, description: {}, handleError: () => this.#pool.clear() };
    this.#timeouts = { serverSelectionTimeoutMS: 0, waitQueueTimeoutMS: given.waitQueueTimeoutMS ?? 0 };
    this.#pool = new ConnectionPool(server, own);
    for (const name of CMAP_EVENTS) this.#pool.on(name, (event) => this.#events.push(event));
  }

  /// What is wrong; null if it passes.
  async play() {
    await this.#waitFor("connectionPoolCreated", 1, 5000);
    let error = null;
    try {
      for (const operation of this.#file.operations) await this.#schedule(operation);
    } catch (thrown) {
      error = thrown;
    }
    const wrong = this.#judge(error);
    this.#pool.close();
    for (const connection of this.#labels.values()) this.#pool.checkIn(connection);
    return wrong;
  }

  #judge(error) {
    const expected = this.#file.error;
    const thrown = error && { type: error.name.replace(/^Mongo/, ""), message: error.message, address: error.address };
    if (expected ? !matches(expected, thrown) : error) return `error ${error?.stack}, expected ${JSON.stringify(expected)}`;
    const ignored = new Set(this.#file.ignore);
    const told = this.#events.map(({ name, durationMS: duration, ...event }) => ({ ...event, type: fileName(name), duration }));
    const actual = told.filter((event) => !ignored.has(event.type));
    const index = this.#file.events.findIndex((event, at) => !matches(event, actual[at]));
    if (index < 0) return null;
    return `event ${index} is ${JSON.stringify(actual[index])}, expected ${JSON.stringify(this.#file.events[index])}`;
  }

  async #schedule({ thread, ...operation }) {
    if (!thread) {
      await this.#perform(operation);
      return;
    }
    const after = this.#threads.get(thread).then(() => this.#perform(operation));
    // It is told by `waitForThread`, if the file has that.
    after.catch(() => {});
    this.#threads.set(thread, after);
  }

  async #perform({ name, ...given }) {
    const pool = this.#pool;
    const operations = {
      start: () => this.#threads.set(given.target, Promise.resolve()),
      wait: () => sleep(given.ms),
      waitForThread: () => this.#threads.get(given.target),
      waitForEvent: () => this.#waitFor(emitterName(given.event), given.count, given.timeout ?? 5000),
      checkOut: async () => {
        const connection = await pool.checkOut({ timeoutContext: TimeoutContext.create(this.#timeouts) });
        this.#labels.set(given.label ?? Symbol("unnamed"), connection);
      },
      checkIn: () => pool.checkIn(this.#labels.get(given.connection)),
      clear: () => pool.clear({ interruptInUseConnections: given.interruptInUseConnections }),
      ready: () => pool.ready(),
      close: () => pool.close(),
    };
    if (!(name in operations)) throw new Error(`no such operation: ${name}`);
    await operations[name]();
  }

  async #waitFor(name, count, timeout) {
    const signal = AbortSignal.timeout(timeout);
    while (this.#events.filter((event) => event.name === name).length < count) await once(this.#pool, name, { signal });
  }
}

const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
const admin = new mongodb.MongoClient(uri);
const failPoint = (command) => admin.db("admin").command({ configureFailPoint: "failCommand", ...command });
let passed = 0;
for (const name of files) {
  const file = JSON.parse(readFileSync(`${folder}/${name}`));
  if (file.failPoint) await failPoint(file.failPoint);
  const wrong = await new Player(file).play();
  if (file.failPoint) await failPoint({ mode: "off" });
  if (wrong === null) passed += 1;
  else console.log(`${name}: ${wrong}`);
}
await admin.close();
console.log(`${passed} of ${files.length}`);
