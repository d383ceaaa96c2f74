// libcenote as WebAssembly: the module, its instances with their memory, and errors.

import { Status } from "./abi.js";
import { CAUSE_OPTIONS_FIELDS, CAUSE_OPTIONS_SIZE, OPTIONS_FIELDS, OPTIONS_SIZE } from "./layout.js";

/// As `pauseAfterFailure`: the pool never runs maintenance.
export const NO_MAINTENANCE = -2;

const FILE = new URL("./cenote.wasm", import.meta.url);
const PAGE = 65536;
const NEVER = 2n ** 64n - 1n;
const NOT_SET = -1n;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const names = Object.fromEntries(Object.entries(Status).map(([name, status]) => [status, name]));

export class CenoteError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "CenoteError";
    this.code = `CENOTE_${code}`;
  }
}

let compiled = null;

/// Compiles the module. Node does so itself for the first pool.
export async function load(module) {
  compiled = module ?? compiled ?? compiledFile() ?? (await WebAssembly.compileStreaming(fetch(FILE)));
}

function compiledFile() {
  const files = globalThis.process?.getBuiltinModule?.("node:fs");
  return files ? new WebAssembly.Module(files.readFileSync(FILE)) : null;
}

/// A number of C that has 64 bits.
export function unsigned(value) {
  if (Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw new CenoteError("BAD_VALUE", `${value} is not from 0 to 2**53 - 1`);
}

/// A number of the caller, or of an enum.
export function word(value) {
  if (value >>> 0 === value) return value;
  throw new CenoteError("BAD_VALUE", `${value} is not from 0 to 2**32 - 1`);
}

/// A time of JavaScript, in milliseconds.
export function nanoseconds(time, name = "") {
  if (typeof time === "number" && time >= 0 && time < 1e13) return BigInt(Math.round(time * 1e6));
  if (time === Infinity) return NEVER;
  throw new CenoteError("BAD_VALUE", `${name}${time} is no time: milliseconds from 0 to 1e13, or Infinity`);
}

function instantiated() {
  try {
    return new WebAssembly.Instance(compiled).exports;
  } catch (error) {
    throw new CenoteError("NO_MEMORY", `no memory for one more pool: ${error.message}`);
  }
}

/// An instance of the module, for one pool: a trap can leave its memory in any state, and ends this instance alone.
export class Library {
  /// The functions of the library.
  calls = {};
  words = new Uint32Array();
  bytes = new Uint8Array();
  /// Memory that is ours: for a structure, then for a number, then for texts.
  structure = 0;
  number = 0;
  #texts = 0;
  #end = 0;
  #memory;

  constructor() {
    compiled ??= compiledFile();
    if (!compiled) throw new CenoteError("NOT_LOADED", "the module is not compiled yet: `await load()` before the first pool");
    const exports = instantiated();
    this.#memory = exports.memory;
    for (const [name, call] of Object.entries(exports)) {
      if (name.startsWith("cenote_")) this.calls[name] = this.#guarded(call);
    }
    // An allocator may take all memory up to its present end when it begins; it begins with the text of this error.
    this.calls.cenote_pool_free(0);
    this.#reserve(PAGE);
  }

  #guarded(call) {
    return (...given) => {
      try {
        return call(...given);
      } catch (error) {
        throw this.#trapped(error);
      }
    };
  }

  /// The first trap is what each call says from now on.
  #trapped(cause) {
    const what = "a bug of the library: this pool cannot be used any more, others can. Make another in its place";
    const error = new CenoteError("TRAPPED", `the module trapped (${cause.message}), ${what}`);
    for (const name of Object.keys(this.calls)) {
      this.calls[name] = () => {
        throw error;
      };
    }
    return error;
  }

  /// Takes memory that the library's allocator does not have.
  #reserve(size) {
    this.structure = this.#memory.grow(Math.ceil(size / PAGE)) * PAGE;
    this.number = this.structure + 256;
    this.#texts = this.number + 16;
    this.#end = this.structure + Math.ceil(size / PAGE) * PAGE;
    this.look();
  }

  /// The memory as it is after a call, which may have moved it.
  look() {
    // What has moved is empty in its old place.
    if (this.words.length === 0) {
      this.words = new Uint32Array(this.#memory.buffer);
      this.bytes = new Uint8Array(this.#memory.buffer);
    }
    return this;
  }

  check(status) {
    if (status !== Status.OK) throw new CenoteError(names[status], this.text(this.calls.cenote_last_error));
  }

  /// Whether there is what was asked for.
  isThere(status) {
    if (status !== Status.NOTHING) this.check(status);
    return status === Status.OK;
  }

  /// A 64-bit number that a call has written.
  written() {
    const { words, number } = this.look();
    return words[number / 4] + words[number / 4 + 1] * 0x100000000;
  }

  /// The text that a call writes. The library cuts what is long.
  text(call, ...given) {
    return decoder.decode(this.take(call, ...given));
  }

  /// Takes the bytes that a call writes, as many as there is room for.
  take(call, ...given) {
    this.check(call(...given, this.#texts, this.#end - this.#texts, this.number));
    const { bytes, words, number } = this.look();
    return bytes.slice(this.#texts, this.#texts + words[number / 4]);
  }

  /// Takes all bytes that a call writes, however many.
  takeAll(call, ...given) {
    const status = call(...given, this.#texts, this.#end - this.#texts, this.number);
    if (status === Status.TRUNCATED) this.#reserve(this.look().words[this.number / 4] + PAGE);
    return this.take(call, ...given);
  }

  /// Writes texts for the next call. Returns where they are; 0 is null.
  texts(...given) {
    const encoded = given.map((text) => (text === null ? null : encoder.encode(text)));
    if (encoded.some((text) => text?.includes(0))) throw new CenoteError("BAD_TEXT", "a text with a zero byte");
    const size = encoded.reduce((sum, text) => sum + (text?.length ?? 0) + 1, 0);
    if (size > this.#end - this.#texts) this.#reserve(size + PAGE);
    const { bytes } = this.look();
    let at = this.#texts;
    return encoded.map((text) => {
      if (text === null) return 0;
      bytes.set(text, at);
      bytes[at + text.length] = 0;
      at += text.length + 1;
      return at - text.length - 1;
    });
  }

  /// Writes a service for the next call; 0 is none.
  service(service) {
    if (service === null) return 0;
    if (service?.length !== 12) throw new CenoteError("BAD_VALUE", `a service has 12 bytes, not ${service?.length}`);
    this.look().bytes.set(service, this.#texts);
    return this.#texts;
  }

  /// Writes the options for the next call. Returns where they are.
  options(given) {
    const unknown = Object.keys(given).filter((name) => !(name in OPTIONS_FIELDS));
    if (unknown.length) {
      const known = Object.keys(OPTIONS_FIELDS).join(", ");
      throw new CenoteError("BAD_OPTIONS", `no such option: ${unknown.join(", ")}; there are ${known}`);
    }
    const view = this.#begin(OPTIONS_SIZE);
    for (const [name, { at, kind }] of Object.entries(OPTIONS_FIELDS)) {
      view.setBigInt64(at, given[name] === undefined ? NOT_SET : option(name, kind, given[name]), true);
    }
    return this.structure;
  }

  /// The options that a connection string has.
  optionsOf(uri) {
    const [text] = this.texts(uri);
    this.#begin(OPTIONS_SIZE);
    this.check(this.calls.cenote_options_from_uri(text, this.structure));
    const view = new DataView(this.look().bytes.buffer, this.structure);
    const read = Object.entries(OPTIONS_FIELDS).map(([name, { at, kind }]) => {
      const value = view.getBigInt64(at, true);
      return [name, value === NOT_SET ? undefined : kind === "time" ? Number(value) / 1e6 : Number(value)];
    });
    return Object.fromEntries(read.filter(([, value]) => value !== undefined));
  }

  /// Makes a cause, which has to be released.
  cause({ text = "", codeName = null, labels = [], ...numbers }) {
    const { topologyVersion = null, code = null, stage = 7, kind = 0, after = 0, payload = 0 } = numbers;
    // A text of C ends at its first zero byte, and servers may send any.
    const clean = (it) => String(it).replaceAll("\0", " ");
    const texts = this.texts(clean(text), codeName === null ? null : clean(codeName), clean(labels.join(" ")));
    const view = this.#begin(CAUSE_OPTIONS_SIZE);
    const fields = CAUSE_OPTIONS_FIELDS;
    ["text", "codeName", "labels"].forEach((name, index) => view.setUint32(fields[name].at, texts[index], true));
    const flags = { hasCode: code !== null, isWriteConcernError: numbers.isWriteConcernError ?? false };
    const written = { stage, kind, payload, ...flags, hasTopologyVersion: topologyVersion !== null };
    for (const [name, value] of Object.entries(written)) view.setUint32(fields[name].at, word(Number(value)), true);
    view.setInt32(fields.code.at, code ?? 0, true);
    view.setBigUint64(fields.after.at, nanoseconds(after), true);
    if (topologyVersion) {
      this.bytes.set(topologyVersion.processId, this.structure + fields.processId.at);
      view.setBigInt64(fields.counter.at, BigInt(topologyVersion.counter), true);
    }
    this.check(this.calls.cenote_cause_new(this.structure, this.number));
    return this.look().words[this.number / 4];
  }

  /// An empty structure that says how large it is.
  #begin(size) {
    const { bytes, structure } = this.look();
    const view = new DataView(bytes.buffer, structure, size);
    bytes.fill(0, structure, structure + size);
    view.setUint32(0, size, true);
    return view;
  }
}

function option(name, kind, value) {
  if (kind === "time" && value !== NO_MAINTENANCE) return BigInt.asIntN(64, nanoseconds(value, `${name} `));
  if (Number.isSafeInteger(Number(value))) return BigInt(Number(value));
  throw new CenoteError("BAD_VALUE", `${name} ${value} is no whole number`);
}
