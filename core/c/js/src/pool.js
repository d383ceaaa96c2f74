// The pool's state machine. Names, rules and errors are those of cenote.h; times are milliseconds.

import { ActionKind, Purpose, Status, TextKind } from "./abi.js";
import * as layout from "./layout.js";
import { Library, nanoseconds, unsigned, word } from "./library.js";

/// Reads the options of a pool from a connection string.
export function optionsFromUri(uri) {
  return new Library().optionsOf(uri);
}

export class Pool {
  #library = new Library();
  #handle;

  constructor(address, options, now, { isReady = false } = {}) {
    const library = this.#library;
    const { cenote_pool_new, cenote_pool_new_ready } = library.calls;
    const make = isReady ? cenote_pool_new_ready : cenote_pool_new;
    const [text] = library.texts(address);
    library.check(make(text, library.options(options), nanoseconds(now), library.number));
    this.#handle = library.look().words[library.number / 4];
  }

  /// Feeds an input.
  #feed(name, now, ...given) {
    const { calls } = this.#library;
    this.#library.check(calls[name](this.#handle, nanoseconds(now), ...given));
  }

  /// Feeds an input that has a cause, after `before`.
  #feedCause(name, now, before, cause, ...after) {
    const { calls } = this.#library;
    const made = this.#library.cause(cause);
    try {
      this.#feed(name, now, ...before, made, ...after.map((it) => it()));
    } finally {
      calls.cenote_cause_release(made);
    }
  }

  free() {
    this.#library.check(this.#library.calls.cenote_pool_free(this.#handle));
  }

  // What happened.

  checkOut(now, request, waiter, deadline = Infinity, purpose = Purpose.OTHER) {
    const { calls } = this.#library;
    const [at, until, id] = [nanoseconds(now), nanoseconds(deadline), unsigned(request)];
    const status = calls.cenote_check_out(this.#handle, at, id, word(waiter), until, word(purpose));
    if (status !== Status.OK) this.#library.check(status);
  }

  cancel(now, request) {
    this.#feed("cenote_cancel", now, unsigned(request));
  }

  checkIn(now, connection, payload) {
    const { calls } = this.#library;
    const status = calls.cenote_check_in(this.#handle, nanoseconds(now), unsigned(connection), word(payload));
    if (status !== Status.OK) this.#library.check(status);
  }

  checkInErrored(now, connection, payload, cause) {
    this.#feedCause("cenote_check_in_errored", now, [unsigned(connection), word(payload)], cause);
  }

  checkInPendingResponse(now, connection, payload, requestId, cause) {
    const before = [unsigned(connection), word(payload), requestId | 0];
    this.#feedCause("cenote_check_in_pending_response", now, before, cause);
  }

  repurpose(now, connection, purpose) {
    this.#feed("cenote_repurpose", now, unsigned(connection), word(purpose));
  }

  handshaken(now, connection, service = null) {
    this.#feed("cenote_handshaken", now, unsigned(connection), this.#library.service(service));
  }

  handshakenLate(now, connection, service, clearsAtHello) {
    const given = [unsigned(connection), this.#library.service(service), unsigned(clearsAtHello)];
    this.#feed("cenote_handshaken_late", now, ...given);
  }

  established(now, connection, payload) {
    this.#feed("cenote_established", now, unsigned(connection), word(payload));
  }

  establishFailed(now, connection, cause) {
    this.#feedCause("cenote_establish_failed", now, [unsigned(connection)], cause);
  }

  idleClosedByPeer(now, connection, cause) {
    this.#feedCause("cenote_idle_closed_by_peer", now, [unsigned(connection)], cause);
  }

  drained(now, connection, payload) {
    this.#feed("cenote_drained", now, unsigned(connection), word(payload));
  }

  drainFailed(now, connection, cause) {
    this.#feedCause("cenote_drain_failed", now, [unsigned(connection)], cause);
  }

  drainProgress(now, connection) {
    this.#feed("cenote_drain_progress", now, unsigned(connection));
  }

  retireConnections(now) {
    this.#feed("cenote_retire_connections", now);
  }

  releaseIdle(now) {
    this.#feed("cenote_release_idle", now);
  }

  ready(now) {
    this.#feed("cenote_ready", now);
  }

  clear(now, cause, { interrupt = false, service = null } = {}) {
    this.#feedCause("cenote_clear", now, [], cause, () => Number(interrupt), () => this.#library.service(service));
  }

  close(now) {
    this.#feed("cenote_close", now);
  }

  timer(now) {
    this.#feed("cenote_timer", now);
  }

  setOptions(now, options) {
    this.#feed("cenote_set_options", now, this.#library.options(options));
  }

  setEvents(wanted) {
    this.#library.check(this.#library.calls.cenote_set_events(this.#handle, Number(wanted)));
  }

  // What to do.

  nextAction() {
    const library = this.#library;
    const { structure, words } = library.look();
    words[structure / 4] = layout.ACTION_SIZE;
    const status = library.calls.cenote_next_action(this.#handle, structure);
    if (status !== Status.OK) library.check(status);
    const memory = library.look();
    if (memory.words[structure / 4 + 1] === ActionKind.NONE) return null;
    return layout.readAction(memory.words, memory.bytes, structure);
  }

  *actions() {
    for (let action; (action = this.nextAction()) !== null; ) yield action;
  }

  actionText(kind) {
    return this.#library.text(this.#library.calls.cenote_action_text, this.#handle, word(kind));
  }

  actionCause() {
    const library = this.#library;
    const { calls, number } = library;
    library.check(calls.cenote_action_cause(this.#handle, number));
    const cause = library.look().words[number / 4];
    try {
      library.check(calls.cenote_cause_payload(cause, number));
      const payload = library.look().words[number / 4];
      return { text: library.text(calls.cenote_cause_text, cause, TextKind.MESSAGE), payload };
    } finally {
      calls.cenote_cause_release(cause);
    }
  }

  // What one can ask.

  /// A structure that a call writes.
  #asked(size, read, call, ...given) {
    const { words, structure } = this.#library.look();
    words[structure / 4] = size;
    if (!this.#library.isThere(call(...given, structure))) return null;
    const memory = this.#library.look();
    return read(memory.words, memory.bytes, structure);
  }

  /// A number that a call writes.
  #number(call, ...given) {
    const { number } = this.#library;
    return this.#library.isThere(call(this.#handle, ...given, number)) ? this.#library.written() : null;
  }

  snapshot() {
    const { cenote_snapshot } = this.#library.calls;
    return this.#asked(layout.SNAPSHOT_INFO_SIZE, layout.readSnapshotInfo, cenote_snapshot, this.#handle);
  }

  connection(connection) {
    const { cenote_connection } = this.#library.calls;
    const given = [this.#handle, unsigned(connection)];
    return this.#asked(layout.CONNECTION_INFO_SIZE, layout.readConnectionInfo, cenote_connection, ...given);
  }

  verdict(connection, cause, topologyVersion = null) {
    const { calls } = this.#library;
    const made = this.#library.cause(cause);
    try {
      const process = this.#library.service(topologyVersion?.processId ?? null);
      const given = [this.#handle, unsigned(connection), made, process, BigInt(topologyVersion?.counter ?? 0)];
      return this.#asked(layout.VERDICT_INFO_SIZE, layout.readVerdictInfo, calls.cenote_verdict, ...given);
    } finally {
      calls.cenote_cause_release(made);
    }
  }

  generation(service = null) {
    return this.#number(this.#library.calls.cenote_generation, this.#library.service(service));
  }

  serviceClears() {
    return this.#number(this.#library.calls.cenote_service_clears);
  }

  generationOf(connection) {
    return this.#number(this.#library.calls.cenote_generation_of, unsigned(connection));
  }

  nextAvailable() {
    const { calls, number } = this.#library;
    const payload = number + 8;
    if (!this.#library.isThere(calls.cenote_next_available(this.#handle, number, payload))) return null;
    return { connection: this.#library.written(), payload: this.#library.words[payload / 4] };
  }

  nextDeadline() {
    const { calls, number } = this.#library;
    const status = calls.cenote_next_deadline(this.#handle, number, 0);
    if (status !== Status.OK) this.#library.check(status);
    const { words } = this.#library.look();
    const high = words[number / 4 + 1];
    return high === 0xffffffff ? Infinity : (words[number / 4] + high * 0x100000000) / 1e6;
  }

  keepsDeadline(armed) {
    const { calls, number } = this.#library;
    const status = calls.cenote_keeps_deadline(this.#handle, nanoseconds(armed), number);
    if (status !== Status.OK) this.#library.check(status);
    return this.#library.look().words[number / 4] !== 0;
  }

  isFilled() {
    this.#library.check(this.#library.calls.cenote_is_filled(this.#handle, this.#library.number));
    return this.#library.look().words[this.#library.number / 4] !== 0;
  }

  fingerprint() {
    const { calls, number } = this.#library;
    this.#library.check(calls.cenote_fingerprint(this.#handle, number));
    const { bytes } = this.#library.look();
    return new DataView(bytes.buffer).getBigUint64(number, true);
  }

  // Traces.

  traceDescribe(origin, program = null) {
    const [text] = this.#library.texts(program);
    this.#library.check(this.#library.calls.cenote_trace_describe(this.#handle, BigInt(Math.round(origin)), text));
  }

  traceStart({ actions = true } = {}) {
    this.#library.check(this.#library.calls.cenote_trace_start(this.#handle, Number(actions)));
  }

  enterStage(now, connection, stage) {
    this.#feed("cenote_enter_stage", now, unsigned(connection), word(stage));
  }

  traceStop() {
    this.#library.check(this.#library.calls.cenote_trace_stop(this.#handle));
  }

  traceRead() {
    return this.#library.take(this.#library.calls.cenote_trace_read, this.#handle);
  }

  flightStart(bytes) {
    this.#library.check(this.#library.calls.cenote_flight_start(this.#handle, word(bytes)));
  }

  flightRead() {
    return this.#library.takeAll(this.#library.calls.cenote_flight_read, this.#handle);
  }
}

if (Symbol.dispose) Pool.prototype[Symbol.dispose] = Pool.prototype.free;
