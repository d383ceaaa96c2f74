// ---- What is in view, and where.

const LEFT = 84;
const RIGHT = 12;
const AXIS = 22;
const MARKS = 18;
const GAP = 10;
const view = { from: first, to: last, top: 0, lane: 14 };
/// The item that is pinned: { kind, index, from, to }, with a lane or a row of waits if it has one.
let selected = null;
/// The range with statistics: { from, to } in ticks.
let range = null;
let width = 0;
let height = 0;

const x = (time) => LEFT + ((time - view.from) / (view.to - view.from)) * (width - LEFT - RIGHT);
const time = (x) => view.from + ((x - LEFT) / (width - LEFT - RIGHT)) * (view.to - view.from);
/// A low page leaves the lanes some room.
const isLow = () => height < 420;
const chartHeight = () => (isLow() ? 48 : 80);
const countsHeight = () => (hasPool ? chartHeight() : 0);
const heatHeight = () => (heat ? (isLow() ? 36 : 48) : 0);
const waitsHeight = () =>
  waits.count === 0 ? 0 : Math.min(isLow() ? 48 : 120, Math.max(24, waits.count * 4));
function layout() {
  const marks = AXIS;
  const servers = marks + (hasPool ? MARKS : 0) + GAP;
  const counts = servers + serversHeight() + (serversHeight() ? GAP : 0);
  const queue = counts + countsHeight() + GAP;
  const holds = queue + countsHeight() / 2 + GAP;
  const waiting = holds + heatHeight() + (heat ? GAP : 0);
  return { marks, servers, counts, queue, holds, waiting, lanes: waiting + waitsHeight() + (waitsHeight() ? GAP : 0) };
}

function resize() {
  const ratio = window.devicePixelRatio || 1;
  width = main.clientWidth;
  height = main.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  draw2d.setTransform(ratio, 0, 0, ratio, 0, 0);
  // At once: the canvas is empty now, and would flicker.
  paint();
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    paint();
  });
}

const SHORTEST = Math.max(20, 2e-6 / tick);
/// `quietly`: what is beside this trace stays where it is.
function show(from, to, quietly = false) {
  const whole = last - first;
  const wanted = Math.min(Math.max(to - from, Math.min(SHORTEST, whole)), whole);
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(middle - wanted / 2, first), last - wanted);
  view.to = view.from + wanted;
  status();
  redraw();
  if (!quietly) tellBeside();
}
/// The middle of the pinned item, or of the part of it that is in view; otherwise that of the view.
function middleOfView() {
  const { from, to } = selected ?? range ?? { from: 1, to: 0 };
  const low = Math.max(from, view.from);
  const high = Math.min(to, view.to);
  const middle = (from + to) / 2;
  if (low > high) return LEFT + (width - LEFT - RIGHT) / 2;
  return x(middle >= view.from && middle <= view.to ? middle : (low + high) / 2);
}
function zoom(factor, px = middleOfView()) {
  const at = time(px);
  const length = (view.to - view.from) * factor;
  const share = (at - view.from) / (view.to - view.from);
  show(at - share * length, at + (1 - share) * length);
}
const pan = (share) => {
  const d = share * (view.to - view.from);
  show(view.from + d, view.to + d);
};
function scroll(by) {
  const room = Math.max(0, lanes * view.lane - (height - layout().lanes));
  view.top = Math.min(Math.max(0, view.top + by), room);
  redraw();
}
function laneHeight(factor) {
  const middle = (view.top + 1) / view.lane;
  view.lane = Math.min(40, Math.max(2, Math.round(view.lane * factor)));
  view.top = middle * view.lane;
  scroll(0);
}
/// Few lanes fill the page, and many are as small as can still be told apart.
function fitLanes() {
  view.lane = Math.min(
    32,
    Math.max(lanes > 400 ? 4 : 8, Math.floor((main.clientHeight - layout().lanes) / lanes)),
  );
}
function status(note = "") {
  const digits = ((view.to - view.from) * tick) / 1000;
  element("status").textContent =
    note ||
    `${shown(seconds(view.from), digits)} to ${shown(seconds(view.to), digits)} ` +
      `(${span(view.to - view.from)} of ${span(last - first)})`;
}
