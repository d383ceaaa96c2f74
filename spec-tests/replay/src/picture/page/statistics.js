// ---- Durations: percentiles, the longest, shades.

const IN_USE = 1;
const PENDING = 0;
const OUTCOMES = [
  "served",
  "timed out",
  "pool cleared or paused",
  "not established",
  "pool closed",
  "cancelled",
  "still waiting at the end",
  "wait queue full",
  "shed on standing delay",
];
const SERVED = 0;
const TIMED_OUT = 1;
const CANCELLED = 5;
const SHED = 8;
const WAITING = 6;
const hasFailed = (outcome) => outcome !== SERVED && outcome !== WAITING;
/// A use that is cut off by the end of the trace has no length.
const hasEnded = (i) => data.useEnd[i] < Math.floor(traced) || !notes.has(i);
const PERCENTS = [50, 90, 99, 100];

/// The kinds of durations, with the intervals that belong to each.
const MEASURED = [
  {
    name: "wait of a served request",
    kind: "wait",
    set: waits,
    is: (i) => data.waitOutcome[i] === SERVED,
    atOnce: true,
  },
  { name: "use", kind: "use", set: uses, is: (i) => data.useKind[i] === IN_USE && hasEnded(i) },
  { name: "establishment", kind: "use", set: uses, is: (i) => data.useKind[i] === PENDING },
];

/// The indices of a sorted column of times between two of them. The ends of the trace are no whole ticks.
const between = (column, from, to) => [
  from <= first + 1 ? 0 : lowerBound(column, from),
  to >= last - 1 ? column.length : lowerBound(column, Math.floor(to) + 1),
];

/// How many requests that ended in this time were served without a wait: their uses have no wait.
function servedAtOnce(from, to) {
  let count = 0;
  for (let i = 0; i < data.useKind.length; i++) {
    const start = startOf(uses, i);
    if (data.useKind[i] === IN_USE && data.useHolder[i] !== 0 && start >= from - 1 && start <= to + 1)
      count += uses.size(i);
  }
  const [low, high] = between(data.waitEnd, from, to);
  for (let i = low; i < high; i++) if (data.waitOutcome[i] === SERVED) count -= waits.size(i);
  return Math.max(0, count);
}

/// The lengths of the intervals in these places, the shortest first; of joined ones their mean.
function lengthsOf(set, is, low, high) {
  let count = 0;
  for (let i = low; i < high; i++) if (is(i)) count += set.size(i);
  const lengths = new Float64Array(count);
  count = 0;
  for (let i = low; i < high; i++) if (is(i)) lengths.fill(set.mean(i), count, (count += set.size(i)));
  return lengths.sort();
}

/// The percentiles of one kind of duration among those that end in a time: each with an interval of that
/// length, or without one if it is 0.
function percentiles(measured, from, to) {
  const { set, is } = measured;
  const [low, high] = between(set.end, from, to);
  const sorted = lengthsOf(set, is, low, high);
  const count = sorted.length;
  const zeros = measured.atOnce ? servedAtOnce(from, to) : 0;
  const all = zeros + count;
  const values =
    all === 0
      ? []
      : PERCENTS.map((percent) => {
          const rank = Math.max(0, Math.ceil((all * percent) / 100) - 1);
          if (rank < zeros) return { percent, length: 0, index: -1 };
          const length = sorted[rank - zeros];
          for (let i = low; i < high; i++)
            if (set.mean(i) === length && is(i)) return { percent, length, index: i };
        });
  return { measured, count: all, values };
}

/// Not of a request that failed at once.
const hasWaited = (i) => data.waitLength[i] > 0;
/// The longest intervals of a kind that overlap a time, the longest first.
function longest(set, is, from, to, count) {
  const found = [];
  for (let i = lowerBound(set.end, from); i < set.end.length; i++) {
    if (found.length === count && set.mean(i) <= set.mean(found[count - 1])) continue;
    if (startOf(set, i) > to || !is(i)) continue;
    let place = found.length;
    while (place > 0 && set.mean(found[place - 1]) < set.mean(i)) place--;
    found.splice(place, 0, i);
    if (found.length > count) found.pop();
  }
  return found;
}

/// The lengths of all uses, the shortest first; and what a share of them does not exceed.
const isWhole = (i) => data.useKind[i] === IN_USE && hasEnded(i);
const usesByLength = lengthsOf(uses, isWhole, 0, data.useEnd.length);
const useAt = (share) => usesByLength[Math.max(0, Math.ceil(usesByLength.length * share) - 1)];
/// The lengths at which their shade changes: half of all, 90 % and 99 % are lighter.
const shadeLimits = usesByLength.length ? [0.5, 0.9, 0.99].map(useAt) : [];
const shadeOf = (length) => shadeLimits.filter((limit) => length > limit).length;

/// The sum of all uses in the order of the rows, up to each place: what a pixel holds is a difference.
const usedUpTo = new Float64Array(uses.order.length + 1);
for (let place = 0; place < uses.order.length; place++) {
  const i = uses.order[place];
  usedUpTo[place + 1] = usedUpTo[place] + (data.useKind[i] === IN_USE ? uses.size(i) * uses.mean(i) : 0);
}

// ---- A map of hold times: how many uses of each length end in each pixel.

const HEAT_ROWS = 12;
const heat =
  usesByLength.length === 0
    ? null
    : (() => {
        // The shortest and the longest ones are in the last rows.
        const shortest = Math.max(1, useAt(0.01));
        const most = Math.max(10 * shortest, useAt(0.999));
        const low = Math.log(shortest);
        const range = Math.log(most) - low;
        const rowOf = (length) => Math.floor(((Math.log(Math.max(1, length)) - low) / range) * HEAT_ROWS);
        const row = Uint8Array.from(data.useLength, (_, i) =>
          Math.min(HEAT_ROWS - 1, Math.max(0, rowOf(uses.mean(i)))),
        );
        return { row, shortest, longest: most };
      })();
