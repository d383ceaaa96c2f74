const about = JSON.parse(document.getElementById("about").textContent);
const element = (id) => document.getElementById(id);
const main = element("main");
const canvas = element("canvas");
const tip = element("tip");
const draw2d = canvas.getContext("2d");
const texts = about.texts;

// ---- What is drawn: columns of 32-bit numbers, compressed.

async function columns() {
  const text = atob(element("data").textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < packed.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const all = {};
  let at = 0;
  for (const [name, count] of about.columns) {
    all[name] = new Uint32Array(buffer, at, count);
    at += 4 * count;
    if (/(End|At)$/.test(name)) {
      const column = all[name];
      for (let i = 1; i < count; i++) column[i] = column[i] + column[i - 1];
    }
  }
  return all;
}
const data = await columns();
element("data").remove();
const tick = about.tick / 1e9;
const begin = data.begin[0] * 4.294967296 + data.begin[1] / 1e9; // In seconds.
const seconds = (ticks) => begin + ticks * tick;
const ticksOf = (seconds) => (seconds - begin) / tick;
const first = Math.max(0, ticksOf(about.start / 1e9));
const last = Math.max(first + 1, ticksOf(about.end / 1e9));
/// The end of the trace: what is drawn with it may go on.
const traced = Math.max(first + 1, ticksOf(about.traced / 1e9));
/// How the uses ended that did not end as usual, by index.
const notes = new Map();
data.noteAt.forEach((index, place) => notes.set(index, texts[data.noteText[place]]));

/// The first place of a sorted column with at least this number.
function lowerBound(column, number) {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ---- Intervals by row, each row in order of time, so that what is in view is found quickly.

/// Of a long trace, neighbours are joined: `counts` and `sums` of their lengths. Of others both are empty.
function rows(row, end, length, counts = [], sums = []) {
  let count = 0;
  for (let i = 0; i < row.length; i++) if (row[i] >= count) count = row[i] + 1;
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < row.length; i++) starts[row[i] + 1]++;
  for (let r = 0; r < count; r++) starts[r + 1] += starts[r];
  const order = new Uint32Array(row.length);
  const next = starts.slice(0, count);
  for (let i = 0; i < row.length; i++) order[next[row[i]]++] = i;
  const size = (i) => counts[i] ?? 1;
  /// How long one of them is, on average.
  const mean = (i) => (size(i) > 1 ? sums[i] / counts[i] : length[i]);
  return { count, starts, order, end, length, size, mean };
}
const lives = rows(data.lifeSlot, data.lifeEnd, data.lifeLength);
const uses = rows(data.useSlot, data.useEnd, data.useLength, data.useCount, data.useSum);
const waits = rows(data.waitRow, data.waitEnd, data.waitLength, data.waitCount, data.waitSum);
const lanes = Math.max(1, lives.count, uses.count);
const startOf = (set, i) => set.end[i] - set.length[i];

/// The first interval of a row, from place `low` on, that ends after `time`.
function firstAfter(set, row, time, low) {
  let high = set.starts[row + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (set.end[set.order[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// The interval of a row at a time, or within `reach` of it; -1 if there is none.
function intervalAt(set, row, at, reach = 0) {
  if (row < 0 || row >= set.count) return -1;
  const place = firstAfter(set, row, at - reach, set.starts[row]);
  if (place >= set.starts[row + 1]) return -1;
  const i = set.order[place];
  return startOf(set, i) <= at + reach ? i : -1;
}

/// Calls `draw(left, right, index, place, count)` for what is in view; what falls into one pixel together
/// is drawn once. Its work depends on the pixels, not on the length of the trace.
function each(set, row, draw) {
  if (row >= set.count) return;
  const end = set.starts[row + 1];
  let at = firstAfter(set, row, view.from, set.starts[row]);
  while (at < end) {
    const i = set.order[at];
    const start = startOf(set, i);
    if (start > view.to) return;
    const left = x(start);
    const right = x(set.end[i]);
    if (right - left >= 1) {
      draw(left, right, i, at, 1);
      at++;
    } else {
      const next = firstAfter(set, row, time(Math.floor(left) + 1), at + 1);
      draw(left, Math.max(right, left + 1), i, at, next - at);
      at = next;
    }
  }
}

// ---- Largest counts of blocks of points, and areas up to each point, for charts of a million of them.

const BLOCK = 64;
function countsOf(column, colour) {
  const blocks = new Uint32Array(Math.ceil(column.length / BLOCK));
  const areas = new Float64Array(column.length);
  for (let i = 0; i < column.length; i++) {
    const block = (i / BLOCK) | 0;
    if (column[i] > blocks[block]) blocks[block] = column[i];
    if (i > 0) areas[i] = areas[i - 1] + column[i - 1] * (data.pointAt[i] - data.pointAt[i - 1]);
  }
  return { column, colour, blocks, areas, max: blocks.reduce((a, b) => Math.max(a, b), 0) };
}
const inUse = countsOf(data.pointInUse);
const waiting = countsOf(data.pointWaiting, "--waiting");
/// Each is drawn over the one before, which leaves the idle ones on top, those in use in the middle, and
/// those being established at the bottom, beside their limit.
const states = [
  countsOf(data.pointTotal, "--idle"),
  countsOf(
    data.pointInUse.map((count, i) => count + data.pointPending[i]),
    "--used",
  ),
  countsOf(data.pointPending, "--pending"),
];
function largest(one, from, to) {
  let max = 0;
  let i = from;
  while (i < to) {
    if (i % BLOCK === 0 && i + BLOCK <= to) {
      max = Math.max(max, one.blocks[i / BLOCK]);
      i += BLOCK;
    } else {
      max = Math.max(max, one.column[i]);
      i++;
    }
  }
  return max;
}
const pointAt = (time) => Math.max(0, lowerBound(data.pointAt, Math.floor(time) + 1) - 1);
const maximum = (one, from, to) => largest(one, pointAt(from), pointAt(to) + 1);
function average(one, from, to) {
  const until = (time, i = pointAt(time)) => one.areas[i] + one.column[i] * (time - data.pointAt[i]);
  return (until(to) - until(from)) / (to - from || 1);
}
const limitAt = (time) => {
  const i = Math.max(0, lowerBound(data.limitAt, time + 1) - 1);
  return { max: data.limitMax[i], min: data.limitMin[i], connecting: data.limitConnecting[i] };
};
