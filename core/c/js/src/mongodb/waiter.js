// A caller that wants a connection.

/// In milliseconds: no limit, where Infinity would be that of waitQueueTimeoutMS.
const UNLIMITED = 1e12;
const nothing = () => {};

export class Waiter {
  request = 0;
  /// Whether the machine has said what comes of it.
  isAnswered = false;
  #isGone = false;
  #connection = null;
  #error = null;
  #resolve;
  #reject;
  #onAbort = nothing;

  /// `timeout` is the driver's for timeoutMS: null without a limit, undefined where waitQueueTimeoutMS is the limit.
  constructor(resolve, reject, timeout, signal) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.timeout = timeout;
    this.signal = signal;
    // The machine looks at the time itself.
    timeout?.then(undefined, nothing);
  }

  /// When the machine ends the wait.
  deadline(now) {
    if (this.timeout === undefined) return Infinity;
    const left = this.timeout?.remainingTime ?? Infinity;
    return left === Infinity ? UNLIMITED : now + Math.max(left, 0);
  }

  onAbort(call) {
    if (!this.signal) return;
    this.#onAbort = call;
    this.signal.addEventListener("abort", call, { once: true });
  }

  leave() {
    this.#isGone = true;
    this.#reject(this.signal.reason);
  }

  answer(connection, error) {
    this.isAnswered = true;
    this.#connection = connection;
    this.#error = error;
  }

  /// Wakes the caller. Returns a connection for which it has not waited.
  end() {
    this.signal?.removeEventListener("abort", this.#onAbort);
    this.timeout?.clear();
    if (this.#isGone) return this.#connection;
    if (this.#connection) this.#resolve(this.#connection);
    else this.#reject(this.#error);
    return null;
  }
}
