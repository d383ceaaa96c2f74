// What install() refuses.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { install } from "cenote/mongodb";
import * as mongodb from "mongodb";

const refusal = (code, message) => ({ name: "CenoteError", code: `CENOTE_${code}`, message });

test("a driver that is not known, or no driver", () => {
  const folder = join(mkdtempSync(join(tmpdir(), "cenote-js-")), "mongodb");
  mkdirSync(join(folder, "lib"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "name": "mongodb", "version": "8.1.0" }');
  writeFileSync(join(folder, "lib", "index.js"), "exports.MongoClient = class {};");
  const newer = createRequire(import.meta.url)(join(folder, "lib", "index.js"));
  assert.throws(() => install(newer), refusal("BAD_DRIVER", /mongodb 8\.1\.0 is not known: install mongodb@/));
  assert.throws(() => install({ MongoClient: class {} }), refusal("BAD_DRIVER", /bundled/));
  assert.throws(() => install({}), refusal("BAD_DRIVER", /no mongodb/));
  const known = /no such option: traces; there are trace, flightRecorder/;
  assert.throws(() => install(mongodb, { traces: folder }), refusal("BAD_OPTIONS", known));
});

test("a client that has connected", async () => {
  const client = new mongodb.MongoClient(process.env.CENOTE_URI);
  await client.connect();
  const attempt = () => assert.throws(() => install(mongodb), refusal("TOO_LATE", /^1 client has connected before install\(\)/));
  attempt();
  attempt();
  await client.close();
});
