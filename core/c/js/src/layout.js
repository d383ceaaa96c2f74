// Numbers and structures of libcenote in WebAssembly: cenote.h explains them. Written by make_abi.py.

/// A 64-bit number, exact up to 2 ** 53; the largest one is never.
const u64 = (words, at) =>
  words[at + 1] === 0xffffffff && words[at] === 0xffffffff ? Infinity : words[at] + words[at + 1] * 0x100000000;

export const OPTIONS_SIZE = 168;
export const OPTIONS_FIELDS = {
  maxPoolSize: { at: 8, kind: "i64" },
  minPoolSize: { at: 16, kind: "i64" },
  maxIdleTime: { at: 24, kind: "time" },
  maxConnecting: { at: 32, kind: "i64" },
  waitQueueTimeout: { at: 40, kind: "time" },
  loadBalanced: { at: 48, kind: "i64" },
  pauseAfterFailure: { at: 56, kind: "time" },
  reuseOrder: { at: 64, kind: "i64" },
  maxLifetime: { at: 72, kind: "time" },
  jitterSeed: { at: 80, kind: "i64" },
  leakDetectionThreshold: { at: 88, kind: "time" },
  unansweredThreshold: { at: 96, kind: "time" },
  experimentalPendingResponse: { at: 104, kind: "i64" },
  maxLogText: { at: 112, kind: "i64" },
  maxWaitQueueSize: { at: 120, kind: "i64" },
  codelTarget: { at: 128, kind: "time" },
  codelInterval: { at: 136, kind: "time" },
  overloadBackoff: { at: 144, kind: "time" },
  adaptiveConnecting: { at: 152, kind: "i64" },
  predictiveMinPoolSize: { at: 160, kind: "i64" },
};

export const ACTION_SIZE = 120;
export function readAction(words, bytes, at) {
  const word = at / 4;
  return {
    kind: words[word + 1],
    remaining: words[word + 2],
    event: words[word + 3],
    connection: u64(words, word + 4),
    payload: words[word + 6],
    waiter: words[word + 7],
    deadline: u64(words, word + 8) / 1e6,
    duration: u64(words, word + 10) / 1e6,
    owner: u64(words, word + 12),
    generation: u64(words, word + 14),
    error: words[word + 16],
    reason: words[word + 17],
    requestId: words[word + 18] | 0,
    service: bytes[at + 88] !== 0 ? bytes.slice(at + 76, at + 88) : null,
    interrupt: bytes[at + 89] !== 0,
    background: bytes[at + 90] !== 0,
    hasCause: bytes[at + 91] !== 0,
    isRetryable: bytes[at + 92] !== 0,
    isTimeout: bytes[at + 93] !== 0,
  };
}

export const CAUSE_OPTIONS_SIZE = 72;
export const CAUSE_OPTIONS_FIELDS = {
  stage: { at: 4, kind: "u32" },
  kind: { at: 8, kind: "u32" },
  hasCode: { at: 12, kind: "u32" },
  code: { at: 16, kind: "i32" },
  isWriteConcernError: { at: 20, kind: "u32" },
  after: { at: 24, kind: "time" },
  text: { at: 32, kind: "text" },
  codeName: { at: 36, kind: "text" },
  labels: { at: 40, kind: "text" },
  payload: { at: 44, kind: "u32" },
  hasTopologyVersion: { at: 48, kind: "u32" },
  processId: { at: 52, kind: "bytes" },
  counter: { at: 64, kind: "i64" },
};

export const VERDICT_INFO_SIZE = 16;
export function readVerdictInfo(words, bytes, at) {
  const word = at / 4;
  return {
    server: words[word + 1],
    pool: words[word + 2],
    check: words[word + 3],
  };
}

export const SNAPSHOT_INFO_SIZE = 104;
export function readSnapshotInfo(words, bytes, at) {
  const word = at / 4;
  return {
    status: words[word + 1],
    generation: u64(words, word + 2),
    total: words[word + 4],
    available: words[word + 5],
    pendingResponse: words[word + 6],
    inUse: words[word + 7],
    pending: words[word + 8],
    maxPoolSize: words[word + 9],
    minPoolSize: words[word + 10],
    maxConnecting: words[word + 11],
    inUseByCursors: words[word + 12],
    inUseByTransactions: words[word + 13],
    inUseByOthers: words[word + 14],
    loadBalanced: words[word + 15],
    waiting: u64(words, word + 16),
    owners: u64(words, word + 18),
    connectionsCreated: u64(words, word + 20),
    clockRegressions: u64(words, word + 22),
    actions: u64(words, word + 24),
  };
}

export const CONNECTION_INFO_SIZE = 64;
export function readConnectionInfo(words, bytes, at) {
  const word = at / 4;
  return {
    state: words[word + 1],
    connection: u64(words, word + 2),
    generation: u64(words, word + 4),
    created: u64(words, word + 6) / 1e6,
    since: u64(words, word + 8) / 1e6,
    service: bytes[at + 52] !== 0 ? bytes.slice(at + 40, at + 52) : null,
    isStale: bytes[at + 53] !== 0,
  };
}
