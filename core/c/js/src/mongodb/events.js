// The driver's events, of those of the machine.

import { ClosedReason, EventKind, FailedReason } from "../abi.js";

const CLOSED_REASONS = {
  [ClosedReason.ERROR]: "error",
  [ClosedReason.STALE]: "stale",
  [ClosedReason.IDLE]: "idle",
  [ClosedReason.POOL_CLOSED]: "poolClosed",
};
const FAILED_REASONS = {
  [FailedReason.POOL_CLOSED]: "poolClosed",
  [FailedReason.TIMEOUT]: "timeout",
  [FailedReason.CONNECTION_ERROR]: "connectionError",
};

/// The event that an action tells. `connection` is the one it is about, `error` why it came to that.
export function eventOf(driver, pool, action, connection, error) {
  // An event subtracts it from the present time.
  const begun = () => driver.clock() - Math.round(action.duration);
  switch (action.event) {
    case EventKind.POOL_READY:
      return new driver.ConnectionPoolReadyEvent(pool);
    case EventKind.POOL_CLEARED: {
      const { serviceId } = connection;
      const { loadBalanced } = pool;
      const { interrupt } = action;
      return new driver.ConnectionPoolClearedEvent(pool, loadBalanced ? { serviceId } : { interruptInUseConnections: interrupt });
    }
    case EventKind.POOL_CLOSED:
      return new driver.ConnectionPoolClosedEvent(pool);
    case EventKind.CONNECTION_CREATED:
      return new driver.ConnectionCreatedEvent(pool, connection);
    case EventKind.CONNECTION_READY:
      return new driver.ConnectionReadyEvent(pool, connection, begun());
    case EventKind.CONNECTION_CLOSED:
      return new driver.ConnectionClosedEvent(pool, connection, CLOSED_REASONS[action.reason], error);
    case EventKind.CHECK_OUT_STARTED:
      return new driver.ConnectionCheckOutStartedEvent(pool);
    case EventKind.CHECK_OUT_FAILED:
      return new driver.ConnectionCheckOutFailedEvent(pool, FAILED_REASONS[action.reason], begun(), error);
    case EventKind.CHECKED_OUT:
      return new driver.ConnectionCheckedOutEvent(pool, connection, begun());
    case EventKind.CHECKED_IN:
      return new driver.ConnectionCheckedInEvent(pool, connection);
    default:
      return null;
  }
}
