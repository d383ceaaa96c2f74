// The driver's errors, of those of the machine. A limit of the pool is none of the network.

import { CheckOutError } from "../abi.js";

/// Why a check-out failed. `step` has the action that says so, with its text.
export function errorOf(driver, pool, waiter, { action, about, text }) {
  switch (action.error) {
    case CheckOutError.POOL_CLOSED:
      return new driver.PoolClosedError(pool);
    case CheckOutError.POOL_CLEARED:
      return new driver.PoolClearedError(pool);
    case CheckOutError.ESTABLISH_FAILED:
      return about.error;
    case CheckOutError.CANCELLED:
      return waiter.signal.reason;
    case CheckOutError.WAIT_QUEUE_TIMEOUT:
      return timeoutOf(driver, pool, waiter, text);
    default:
      return new driver.MongoRuntimeError(`a check-out failed for a reason that is not known: ${action.error}`);
  }
}

/// The driver's texts; the cause says more.
function timeoutOf({ WaitQueueTimeoutError, MongoOperationTimeoutError }, pool, waiter, text) {
  const message = "Timed out while checking out a connection from connection pool";
  const error = new WaitQueueTimeoutError(pool.loadBalanced ? pool.waitQueueErrorMetrics() : message, pool.address);
  error.cause = new Error(text);
  if (waiter.timeout === undefined) return error;
  return new MongoOperationTimeoutError("Timed out during connection checkout", { cause: error });
}
