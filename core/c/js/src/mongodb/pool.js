// The class that the driver makes its pools of.

import { DecidedPool } from "./decided.js";

export function poolClass(driver, settings) {
  return class ConnectionPool extends driver.ConnectionPool {
    #decided;

    constructor(server, options) {
      super(server, options);
      this.#decided = new DecidedPool(this, server, driver, settings);
      this.generation = 1;
    }

    get availableConnectionCount() {
      return this.#decided.snapshot().available;
    }

    get pendingConnectionCount() {
      return this.#decided.snapshot().pending;
    }

    get waitQueueSize() {
      return this.#decided.snapshot().waiting;
    }

    ready() {
      this.#decided.ready();
    }

    checkOut(options) {
      return this.#decided.checkOut(options);
    }

    checkIn(connection) {
      this.#decided.checkIn(connection);
    }

    clear(options) {
      this.#decided.clear(options);
    }

    close() {
      this.#decided.close();
    }
  };
}
