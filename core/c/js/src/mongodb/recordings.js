// What a pool of the driver records: everything, and the latest inputs for when a check-out times out.

import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { clearInterval, setInterval } from "node:timers";

const SECOND = 1000;
/// Memory of a flight recorder: some 29,000 check-outs with their check-ins.
const FLIGHT_BYTES = 1 << 20;
/// How far dumps are apart at least.
const BETWEEN_DUMPS = 60 * SECOND;
let count = 0;
/// Recordings that have begun: a program that ends without closing its clients writes the rest of them.
const running = new Set();
process.on("exit", () => running.forEach((it) => it.end()));

export class Recordings {
  #machine;
  #recording = null;
  #timer = null;
  #dumps;
  #dumpedAt = -Infinity;

  /// Begins what the settings want: folders for files.
  constructor(machine, { trace, flightRecorder }, program) {
    this.#machine = machine;
    this.#dumps = flightRecorder;
    if (trace === null && flightRecorder === null) return;
    machine.traceDescribe(performance.timeOrigin, program);
    if (flightRecorder !== null) machine.flightStart(FLIGHT_BYTES);
    if (trace === null) return;
    attempt(trace, () => {
      this.#recording = new TraceFile(trace, "recording");
      machine.traceStart();
      running.add(this);
      this.#timer = setInterval(() => this.#write(), SECOND).unref();
    });
  }

  /// The pool is closed.
  end() {
    if (this.#recording === null) return;
    attempt(this.#recording.path, () => this.#machine.traceStop());
    this.#write();
    this.abandon();
  }

  /// Nothing more can be recorded.
  abandon() {
    running.delete(this);
    clearInterval(this.#timer);
    this.#recording?.close();
    this.#recording = null;
  }

  /// A check-out has timed out: where its story is, for the error.
  timedOut() {
    if (this.#recording !== null) {
      const { path } = this.#recording;
      this.#write();
      return `; recorded in ${path}`;
    }
    if (this.#dumps === null || performance.now() - this.#dumpedAt < BETWEEN_DUMPS) return "";
    this.#dumpedAt = performance.now();
    let told = "";
    attempt(this.#dumps, () => {
      const file = new TraceFile(this.#dumps, "timeout");
      file.write(this.#machine.flightRead());
      file.close();
      told = `; its story is in ${file.path}`;
    });
    return told;
  }

  #write() {
    const isWritten = attempt(this.#recording.path, () => {
      for (let part; (part = this.#machine.traceRead()).length > 0; ) this.#recording.write(part);
    });
    if (!isWritten) this.abandon();
  }
}

/// A new file of a folder, for its owner alone, with a name that no other pool has.
class TraceFile {
  #file;

  constructor(folder, what) {
    const time = new Date().toISOString().replaceAll(/[-:]/g, "");
    count += 1;
    this.path = join(folder, `cenote-${time}-${process.pid}-${count}-${what}.bson`);
    this.#file = openSync(this.path, "wx", 0o600);
  }

  write(bytes) {
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
  }

  close() {
    closeSync(this.#file);
  }
}

/// A recording that fails is told, and the pool goes on.
function attempt(path, action) {
  try {
    action();
    return true;
  } catch (error) {
    process.emitWarning(`no trace can be written to ${path}: ${error.message}`, { code: "CENOTE_TRACE" });
    return false;
  }
}
