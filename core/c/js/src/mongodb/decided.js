// What Cenote decides for a pool of the driver: inputs, and the actions that follow.

import { clearTimeout, setTimeout } from "node:timers";

import { ActionKind, CheckOutError, EventKind, TextKind } from "../abi.js";
import { NO_MAINTENANCE } from "../library.js";
import { Pool } from "../pool.js";
import { Connections } from "./connections.js";
import { errorOf } from "./errors.js";
import { eventOf } from "./events.js";
import { listenersOf } from "./listeners.js";
import { Recordings } from "./recordings.js";
import { Waiter } from "./waiter.js";

const LONGEST_TIMER = 2 ** 31 - 1;
/// Their events have no error. A time-out's has none in the driver's own pool; the reason of a caller that aborts is no failure
/// of a connection.
const UNTOLD = new Set([CheckOutError.WAIT_QUEUE_TIMEOUT, CheckOutError.CANCELLED]);

export class DecidedPool {
  #pool;
  #server;
  #driver;
  #machine;
  #connections;
  #recordings;
  #waiters = new Map();
  #requests = 0;
  #listeners;
  #hasEvents = true;
  /// Actions to perform, in their order.
  #queue = [];
  #isPerforming = false;
  #timer = null;
  #due = Infinity;

  constructor(pool, server, driver, settings) {
    this.#pool = pool;
    this.#server = server;
    this.#driver = driver;
    const { options } = pool;
    try {
      this.#machine = new Pool(nameOf(options.hostAddress), machineOptions(options), performance.now());
    } catch (error) {
      throw new driver.MongoInvalidArgumentError(`Cenote's pool: ${error.message}`, { cause: error });
    }
    const feed = (input, about) => this.#feed(input, about);
    this.#connections = new Connections(driver, pool, server, this.#machine, feed);
    this.#recordings = new Recordings(this.#machine, settings, `Node.js driver ${driver.version}`);
    this.#listeners = listenersOf(server.topology.client, driver.CMAP_EVENTS);
    // The driver's class tells that there is a new pool.
    this.#machine.nextAction();
  }

  /// Counts; none of a machine that has trapped.
  snapshot() {
    try {
      return this.#machine.snapshot();
    } catch {
      return { available: 0, pending: 0, waiting: 0 };
    }
  }

  // What the driver asks for.

  ready() {
    if (this.#pool.poolState === "paused") this.#pool.poolState = "ready";
    this.#feed((now) => this.#machine.ready(now));
  }

  checkOut({ timeoutContext, signal }) {
    return new Promise((resolve, reject) => {
      const timeout = timeoutContext.csotEnabled() ? timeoutContext.connectionCheckoutTimeout : undefined;
      const waiter = new Waiter(resolve, reject, timeout, signal);
      const request = (waiter.request = this.#requests += 1);
      waiter.onAbort(() => this.#abort(waiter));
      // The machine keeps 32 bits of it.
      this.#waiters.set(request >>> 0, waiter);
      this.#use((now) => this.#machine.checkOut(now, request, request >>> 0, waiter.deadline(now)));
    });
  }

  #abort(waiter) {
    waiter.leave();
    if (!waiter.isAnswered) this.#feed((now) => this.#machine.cancel(now, waiter.request));
  }

  /// The driver returns some connections twice. As in its own pool, the second time means nothing.
  checkIn(connection) {
    if (!this.#pool.checkedOut.delete(connection)) return;
    const { id, error } = connection;
    if (connection.closed) {
      const cause = this.#connections.causeOf(error);
      this.#use((now) => this.#machine.checkInErrored(now, id, 0, cause), { id, error });
    } else {
      connection.markAvailable();
      this.#use((now) => this.#machine.checkIn(now, id, 0));
    }
    this.#endRecording();
  }

  clear({ serviceId, interruptInUseConnections = false } = {}) {
    const pool = this.#pool;
    if (pool.closed) return;
    const cause = this.#connections.causeOf(pool.serverError);
    if (!pool.loadBalanced) {
      pool.poolState = "paused";
      // The driver takes 0 for no generation, so it hears of one more than the machine has.
      pool.generation += 1;
      this.#feed((now) => this.#machine.clear(now, cause, { interrupt: interruptInUseConnections }));
      return;
    }
    const { MongoRuntimeError } = this.#driver;
    if (!serviceId) throw new MongoRuntimeError("ConnectionPool.clear() called in load balanced mode with no serviceId.");
    const service = serviceId.toHexString();
    const generation = pool.serviceGenerations.get(service);
    if (generation === undefined) throw new MongoRuntimeError("Service generations are required in load balancer mode.");
    pool.serviceGenerations.set(service, generation + 1);
    this.#feed((now) => this.#machine.clear(now, cause, { service: serviceId.id }), { serviceId });
  }

  close() {
    if (this.#pool.closed) return;
    this.#pool.poolState = "closed";
    this.#feed((now) => this.#machine.close(now));
    // It may be of a wait that has ended since, and would keep the process alive.
    clearTimeout(this.#timer);
    this.#endRecording();
  }

  /// With the last connection that comes back to a closed pool.
  #endRecording() {
    if (this.#pool.closed && this.#pool.checkedOut.size === 0) this.#recordings.end();
  }

  // What the machine is told.

  /// Tells the machine what happened, and performs what follows. It may be about the error of a connection, or a service.
  #feed(input, about = {}) {
    this.#tell(input, about, () => this.#arm());
  }

  /// The same for a check-out or a check-in, after which the timer usually stays as it is.
  #use(input, about = {}) {
    this.#tell(input, about, () => {
      if (!this.#machine.keepsDeadline(this.#due)) this.#arm();
    });
  }

  #tell(input, about, arm) {
    try {
      this.#adjustEvents();
      input(performance.now());
      this.#pull(about);
      arm();
      if (!this.#isPerforming) this.#performAll();
    } catch (trap) {
      if (trap.code !== "CENOTE_TRAPPED") throw trap;
      this.#end(trap);
    }
  }

  #adjustEvents() {
    const wanted = this.#listeners.areThere || Boolean(this.#pool.mongoLogger?.willLog("connection", "debug"));
    if (wanted === this.#hasEvents) return;
    this.#hasEvents = wanted;
    this.#machine.setEvents(wanted);
  }

  #pull(about) {
    for (let action; (action = this.#machine.nextAction()) !== null; ) {
      // Texts can be had of the last action alone.
      const isTimeout = action.kind === ActionKind.DELIVER && action.error === CheckOutError.WAIT_QUEUE_TIMEOUT;
      const text = isTimeout ? this.#machine.actionText(TextKind.EXPLANATION) + this.#recordings.timedOut() : null;
      this.#queue.push({ action, about, text });
      if (action.remaining === 0) break;
    }
  }

  #performAll() {
    this.#isPerforming = true;
    try {
      for (let step; (step = this.#queue.shift()) !== undefined; ) this.#perform(step);
    } finally {
      this.#isPerforming = false;
    }
  }

  /// Sets the timer, unless it rings in time. One that rings early does no harm.
  #arm() {
    const due = this.#machine.nextDeadline();
    if (due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    const delay = Math.min(Math.max(Math.ceil(due - performance.now()), 0), LONGEST_TIMER);
    this.#timer = setTimeout(() => {
      this.#due = Infinity;
      this.#feed((now) => this.#machine.timer(now));
    }, delay);
  }

  /// Nothing is known of the machine any more.
  #end(trap) {
    const error = new this.#driver.MongoRuntimeError(trap.message, { cause: trap });
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    this.#queue.length = 0;
    this.#isPerforming = false;
    for (const waiter of waiters) this.#answer(waiter, null, error);
    this.#connections.abandon();
    this.#recordings.abandon();
  }

  // What the machine wants done.

  #perform(step) {
    const { action } = step;
    switch (action.kind) {
      case ActionKind.DELIVER:
        this.#deliver(step);
        break;
      case ActionKind.EMIT_EVENT:
        this.#publish(step);
        break;
      case ActionKind.START_ESTABLISH:
        this.#connections.establish(action);
        break;
      case ActionKind.ABORT_ESTABLISH:
        this.#connections.abort(action.connection);
        break;
      case ActionKind.CLOSE_SOCKET:
        this.#connections.close(action.connection);
        break;
      case ActionKind.INTERRUPT:
        this.#connections.interrupt(action.connection);
        break;
    }
  }

  #deliver(step) {
    const { action } = step;
    const waiter = this.#waiters.get(action.waiter);
    this.#waiters.delete(action.waiter);
    if (action.error !== CheckOutError.NONE) {
      this.#answer(waiter, null, errorOf(this.#driver, this.#pool, waiter, step));
      return;
    }
    const connection = this.#connections.get(action.connection);
    this.#pool.checkedOut.add(connection);
    this.#answer(waiter, connection, null);
  }

  /// As in the driver's own pool, a caller goes on when the code is done that ended its wait.
  #answer(waiter, connection, error) {
    waiter.answer(connection, error);
    queueMicrotask(() => {
      const unwanted = waiter.end();
      if (unwanted) this.checkIn(unwanted);
    });
  }

  /// Emits an event of the driver. What a listener throws must not stop the actions behind it.
  #publish(step) {
    const { action, about } = step;
    const connection = this.#connections.get(action.connection) ?? { id: action.connection, serviceId: about.serviceId };
    let error = action.connection === about.id ? about.error : undefined;
    if (action.event === EventKind.CHECK_OUT_FAILED) {
      error = UNTOLD.has(action.error) ? undefined : errorOf(this.#driver, this.#pool, null, step);
    }
    const event = eventOf(this.#driver, this.#pool, action, connection, error ?? undefined);
    try {
      if (event !== null) this.#pool.emitAndLog(event.name, event);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }
}

function nameOf(address) {
  const name = String(address);
  // Without the zone of an IPv6 address.
  return name.startsWith("[") ? name.replace(/%[^\]]*/, "") : name;
}

function machineOptions(options) {
  const { maxPoolSize, minPoolSize, maxConnecting, maxIdleTimeMS, waitQueueTimeoutMS, loadBalanced } = options;
  const given = { maxPoolSize, minPoolSize, maxConnecting, loadBalanced: Boolean(loadBalanced) };
  Object.assign(given, { maxIdleTime: maxIdleTimeMS, waitQueueTimeout: waitQueueTimeoutMS });
  // Its own pool would never again look after the minimum.
  if (options.minPoolSizeCheckFrequencyMS >= LONGEST_TIMER) given.pauseAfterFailure = NO_MAINTENANCE;
  return given;
}
