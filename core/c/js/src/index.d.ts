// The pool's state machine. The rules are those of cenote.h; all times are milliseconds, fractions included.

import type { Action, CauseKind, CauseStage, ConnectionInfo, Options } from "./abi.js";
import type { Purpose, SnapshotInfo, TextKind, VerdictInfo } from "./abi.js";

export * from "./abi.js";

/** As `pauseAfterFailure`: the pool never runs maintenance. */
export declare const NO_MAINTENANCE: -2;

/**
 * Compiles the machine. Node does so itself for the first pool; elsewhere, await this before. Without an argument it fetches
 * `cenote.wasm` from beside this module.
 */
export declare function load(module?: WebAssembly.Module): Promise<void>;

/** Reads the options of a pool from a connection string. */
export declare function optionsFromUri(uri: string): Options;

/**
 * A call was refused, and changed nothing. Its message says which rule it broke.
 *
 * After `CENOTE_TRAPPED`, a bug of the library, the pool cannot be used any more; others can.
 */
export declare class CenoteError extends Error {
  /** `CENOTE_` and a name of `Status`, such as `CENOTE_MISUSE`; or `CENOTE_NOT_LOADED`, `CENOTE_NO_MEMORY`, `CENOTE_TRAPPED`. */
  readonly code: string;
}

/** Why a connection could not be established, or failed in use. */
export interface Cause {
  /** The reason: the message of an error reply, the text of an I/O error. */
  text?: string;
  /** Default: `OPERATION`. */
  stage?: CauseStage;
  /** Default: `NETWORK`. */
  kind?: CauseKind;
  /** The code of an error reply. */
  code?: number | null;
  codeName?: string | null;
  labels?: readonly string[];
  /** Whether the error is a reply's `writeConcernError`. */
  isWriteConcernError?: boolean;
  /** The limit that ran out. */
  after?: number;
  /** A number of yours, from 0 to 2**32 - 1, which `Pool.actionCause` returns. */
  payload?: number;
  topologyVersion?: TopologyVersion | null;
}

export interface TopologyVersion {
  /** 12 bytes. */
  processId: Uint8Array;
  counter: number | bigint;
}

/**
 * A pool: tell it what happened, with the time, and perform the actions that follow.
 *
 * `now` is the present time of any clock that does not run backwards, such as `performance.now()`. `payload` and `waiter` are
 * numbers of yours, from 0 to 2**32 - 1. A service is the 12 bytes of a load balancer's `serviceId`. Each call throws
 * `CenoteError` if it is refused. A pool has a WebAssembly instance of its own, whose memory goes with the object.
 */
export declare class Pool {
  /** A pool for the server at `address` (`host:port`): paused and empty, or with `isReady` ready from the start. */
  constructor(address: string, options: Options, now: number, more?: { isReady?: boolean });
  /** Frees the machine: every later call is refused. */
  free(): void;
  [Symbol.dispose](): void;

  /**
   * A caller wants a connection. `request` is greater than every one before it; `waiter` comes back with the outcome.
   * `deadline` is when the caller gives up; without one, `waitQueueTimeout` applies.
   */
  checkOut(now: number, request: number, waiter: number, deadline?: number, purpose?: Purpose): void;
  /** A caller cancelled its check-out. Does nothing if the request has its outcome. */
  cancel(now: number, request: number): void;
  /** A connection comes back and may be used again. */
  checkIn(now: number, connection: number, payload: number): void;
  /** A connection comes back and must not be used again. */
  checkInErrored(now: number, connection: number, payload: number, cause: Cause): void;
  /** A connection comes back whose caller did not wait for the reply to `requestId`. */
  checkInPendingResponse(now: number, connection: number, payload: number, requestId: number, cause: Cause): void;
  /** A connection in use serves another purpose from now on. */
  repurpose(now: number, connection: number, purpose: Purpose): void;
  /** Hello is done, authentication is not. Behind a load balancer required, with the service. */
  handshaken(now: number, connection: number, service?: Uint8Array | null): void;
  /** The same for a hello that was done earlier, when `serviceClears` gave that number. */
  handshakenLate(now: number, connection: number, service: Uint8Array | null, clearsAtHello: number): void;
  /** A connection finished handshake and authentication. */
  established(now: number, connection: number, payload: number): void;
  /** A connection could not be established. */
  establishFailed(now: number, connection: number, cause: Cause): void;
  /** The peer closed an available connection. Does nothing if it is in use, or closed by now. */
  idleClosedByPeer(now: number, connection: number, cause: Cause): void;
  /** A late reply was read and discarded. */
  drained(now: number, connection: number, payload: number): void;
  /** A late reply could not be read. */
  drainFailed(now: number, connection: number, cause: Cause): void;
  /** Bytes of a late reply were read. */
  drainProgress(now: number, connection: number): void;
  /** Credentials changed: each connection so far is closed as soon as it is not in use. */
  retireConnections(now: number): void;
  /** The process is about to be frozen: each connection that no request uses or waits for is closed. */
  releaseIdle(now: number): void;
  /** The server can be used. */
  ready(now: number): void;
  /** Every connection so far may be broken, or those of one service behind a load balancer. */
  clear(now: number, cause: Cause, more?: { interrupt?: boolean; service?: Uint8Array | null }): void;
  /** The pool is closed, for good. */
  close(now: number): void;
  /** The `nextDeadline` is due. Early, late or twice does no harm. */
  timer(now: number): void;
  /** The options change; those that are not set return to their defaults. */
  setOptions(now: number, options: Options): void;
  /** Whether actions of kind `EMIT_EVENT` are made; a new pool makes them. */
  setEvents(wanted: boolean): void;

  /** Pulls the next action; `null` if there is none. */
  nextAction(): Action | null;
  /** Pulls actions until there is none. */
  actions(): Generator<Action, void, void>;
  /** A text of the action that was pulled last. */
  actionText(kind: TextKind): string;
  /** The cause in the action that was pulled last. */
  actionCause(): { text: string; payload: number };

  /** Counts, state and generation. */
  snapshot(): SnapshotInfo;
  /** A connection, as it is at this moment; `null` if it is closed, or never was. */
  connection(connection: number): ConnectionInfo | null;
  /** Judges the failure of a connection, before it is fed to the pool; with the topology version of the server. */
  verdict(connection: number, cause: Cause, topologyVersion?: TopologyVersion | null): VerdictInfo;
  /** The pool's generation; with a service, that of the service, or `null` if no connection belongs to it. */
  generation(service?: Uint8Array | null): number | null;
  /** How often a service was cleared, for `handshakenLate`. */
  serviceClears(): number;
  /** The generation of a connection; `null` if it is closed, or never was. */
  generationOf(connection: number): number | null;
  /** The connection that a check-out would get now; `null` if it would wait or fail. */
  nextAvailable(): { connection: number; payload: number } | null;
  /** When to call `timer` next; `Infinity` if there is nothing to wait for. To be asked again after every input. */
  nextDeadline(): number;
  /**
   * Whether a timer may stay set to `armed`, no later than the deadline before the last input, because that was a check-out or a
   * check-in. If not, ask `nextDeadline`, which takes longer.
   */
  keepsDeadline(armed: number): boolean;
  /** Whether as many connections are established as `minPoolSize` wants. */
  isFilled(): boolean;
  /** The same number for two pools in the same state. */
  fingerprint(): bigint;

  /** What the recordings that begin from now on say: the milliseconds since 1970 at time 0, and the program. */
  traceDescribe(origin: number, program?: string | null): void;
  /** Begins to record every input, and unless `actions` is false every action. */
  traceStart(more?: { actions?: boolean }): void;
  /** The establishment of a connection has come to a stage: for the trace. */
  enterStage(now: number, connection: number, stage: CauseStage): void;
  /** Ends the recording. What was not read yet can still be read. */
  traceStop(): void;
  /** The next bytes of the trace; empty if there are none at present. */
  traceRead(): Uint8Array;
  /** Keeps the latest inputs from now on, in `bytes` bytes of memory, from 1,024 to 2**30: a flight recorder. */
  flightStart(bytes: number): void;
  /** What the flight recorder has kept, as a whole trace; it goes on. */
  flightRead(): Uint8Array;
}
