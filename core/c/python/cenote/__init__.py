"""MongoDB's connection pool (CMAP) as a deterministic state machine. For PyMongo: `cenote.pymongo`."""

from ._abi import (
    ActionKind,
    CauseKind,
    CauseStage,
    CheckOutError,
    ClosedReason,
    ConnectionInfo,
    ConnectionState,
    EventKind,
    FailedReason,
    PoolStatus,
    Purpose,
    SnapshotInfo,
    Status,
    TextKind,
)
from ._pool import NEVER, NO_MAINTENANCE, Action, Cause, Error, Options, Pool

__all__ = [
    "NEVER",
    "NO_MAINTENANCE",
    "Action",
    "ActionKind",
    "Cause",
    "CauseKind",
    "CauseStage",
    "CheckOutError",
    "ClosedReason",
    "ConnectionInfo",
    "ConnectionState",
    "Error",
    "EventKind",
    "FailedReason",
    "Options",
    "Pool",
    "PoolStatus",
    "Purpose",
    "SnapshotInfo",
    "Status",
    "TextKind",
]
