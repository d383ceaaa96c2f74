// What a pool of the driver records.

import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

const SECOND = 1000;
let count = 0;

export class Recordings {
  #machine;
  #file = null;
  #path = null;
  #timer = null;

  constructor(machine, { trace }, program) {
    this.#machine = machine;
    if (trace === null) return;
    machine.traceDescribe(performance.timeOrigin, program);
    this.#attempt(() => {
      this.#path = join(trace, nameOf("recording"));
      this.#file = openSync(this.#path, "wx", 0o600);
      machine.traceStart();
      this.#timer = setInterval(() => this.#attempt(() => this.#write()), SECOND).unref();
    });
  }

  /// Ends the recording.
  end() {
    if (this.#file === null) return;
    this.#machine.traceStop();
    this.#attempt(() => this.#write());
    this.#close();
  }

  /// A check-out has timed out. Where its story is, for the error.
  timedOut() {
    return this.#file === null ? "" : `; recorded in ${this.#path}`;
  }

  #write() {
    for (let part; (part = this.#machine.traceRead()).length > 0; ) writeSync(this.#file, part);
  }

  #attempt(action) {
    try {
      action();
    } catch (error) {
      process.emitWarning(`no trace can be written to ${this.#path}: ${error.message}`, { code: "CENOTE_TRACE" });
      this.#close();
    }
  }

  #close() {
    clearInterval(this.#timer);
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

/// A name that no other pool has, with the time.
function nameOf(what) {
  const time = new Date().toISOString().replaceAll(/[-:]/g, "");
  count += 1;
  return `cenote-${time}-${process.pid}-${count}-${what}.bson`;
}
