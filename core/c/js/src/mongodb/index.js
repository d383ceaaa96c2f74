// Cenote's pool for the official driver of Node.js: sockets, handshakes, SDAM, errors and events stay the driver's.

import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

import { CenoteError } from "../library.js";
import { poolClass } from "./pool.js";

const VERSIONS = ["6.22", "7.9"];
const OPTIONS = ["trace", "flightRecorder"];
/// What is used of the driver's files, which no version promises to keep.
const PARTS = {
  "./cmap/connect.js": ["connect"],
  "./cmap/connection.js": ["Connection"],
  "./cmap/connection_pool.js": ["ConnectionPool"],
  "./cmap/connection_pool_events.js": [
    "ConnectionCheckedInEvent",
    "ConnectionCheckedOutEvent",
    "ConnectionCheckOutFailedEvent",
    "ConnectionCheckOutStartedEvent",
    "ConnectionClosedEvent",
    "ConnectionCreatedEvent",
    "ConnectionPoolClearedEvent",
    "ConnectionPoolClosedEvent",
    "ConnectionPoolReadyEvent",
    "ConnectionReadyEvent",
  ],
  "./cmap/errors.js": ["PoolClearedError", "PoolClearedOnNetworkError", "PoolClosedError", "WaitQueueTimeoutError"],
  "./constants.js": ["APM_EVENTS", "CMAP_EVENTS"],
  "./error.js": [
    "MongoInvalidArgumentError",
    "MongoNetworkError",
    "MongoNetworkTimeoutError",
    "MongoOperationTimeoutError",
    "MongoRuntimeError",
    "MongoServerError",
  ],
  "./mongo_types.js": ["CancellationToken"],
  "./sdam/topology.js": ["Topology"],
};

/// In the driver's module, for all copies of this package: what pools are made with, and how many topologies were made to count.
const MARK = Symbol.for("cenote");

export function install(mongodb, options = {}) {
  const given = settingsOf(options);
  const driver = partsOf(driverOf(mongodb?.default?.MongoClient ? mongodb.default : mongodb));
  const mark = (driver.home[MARK] ??= { settings: null, counted: 0 });
  if (mark.settings) {
    Object.assign(mark.settings, given);
    return;
  }
  // The number of a topology counts those before it: each is a client that has connected, or was made here.
  const connected = new driver.Topology({}, "localhost:27017").s.id - mark.counted;
  mark.counted += 1;
  if (connected > 0) {
    const clients = `${connected} ${connected === 1 ? "client has" : "clients have"} connected`;
    throw new CenoteError("TOO_LATE", `${clients} before install(): call it before the first MongoClient connects`);
  }
  mark.settings = { trace: null, flightRecorder: null, ...given };
  driver.home.ConnectionPool = poolClass(driver, mark.settings);
}

/// Those that are given; null is none.
function settingsOf(options) {
  const settings = {};
  for (const [name, folder] of Object.entries(options)) {
    if (!OPTIONS.includes(name)) {
      throw new CenoteError("BAD_OPTIONS", `no such option: ${name}; there are ${OPTIONS.join(", ")}`);
    }
    if (folder === undefined) continue;
    settings[name] = null;
    if (folder === null) continue;
    if (typeof folder !== "string") throw new CenoteError("BAD_OPTIONS", `${name} is the path of a folder, not ${folder}`);
    settings[name] = resolve(folder);
    mkdirSync(settings[name], { recursive: true });
  }
  return settings;
}

/// The driver's module, as Node has loaded it.
function driverOf(mongodb) {
  const loaded = Object.values(createRequire(import.meta.url).cache);
  const found = loaded.find((it) => it?.exports === mongodb && /[\\/]lib[\\/]index\.js$/.test(it.filename));
  if (found && mongodb.MongoClient) return found;
  const copy = "a copy of mongodb that Node has not loaded from its package, perhaps bundled";
  const what = mongodb?.MongoClient ? copy : "no mongodb";
  throw new CenoteError("BAD_DRIVER", `install() got ${what}: give it what import * as mongodb from "mongodb" has`);
}

function partsOf({ filename }) {
  const require = createRequire(filename);
  const { version } = require("../package.json");
  if (!VERSIONS.includes(version.split(".").slice(0, 2).join("."))) {
    const known = VERSIONS.join(" and ");
    throw new CenoteError("BAD_DRIVER", `mongodb ${version} is not known: install mongodb@7.9; known are ${known}`);
  }
  const driver = { version };
  for (const [file, names] of Object.entries(PARTS)) {
    const module = require(file);
    for (const name of names) {
      if (module[name] === undefined) throw new CenoteError("BAD_DRIVER", `mongodb ${version} has no ${name} in ${file}`);
      driver[name] = module[name];
    }
  }
  // Of 7.x, or of 6.x.
  const { processTimeMS, now } = require("./utils.js");
  driver.clock = processTimeMS ?? now;
  driver.home = require("./cmap/connection_pool.js");
  return driver;
}
