// ---- The view.

const KINDS = [
  { name: "ready", colour: "--ready" }, { name: "clear", colour: "--clear" },
  { name: "close", colour: "--close" }, { name: "check-out failed", colour: "--failed" },
  { name: "establishment failed", colour: "--failed" }, { name: "other", colour: "--other" },
];
const OUTCOMES = ["served", "timed out", "pool cleared or paused", "not established", "pool closed",
  "cancelled", "still waiting at the end"];
const LEFT = 84, RIGHT = 12, AXIS = 22, MARKS = 16, CHART = 90, GAP = 8;
const view = { from: first, to: last, top: 0, lane: 14 };
let width = 0, height = 0, colours = {}, hovered = null, found = null, marked = null;
const texts = about.texts;
const many = (number) => number.toLocaleString("en");

const x = (time) => LEFT + (time - view.from) / (view.to - view.from) * (width - LEFT - RIGHT);
const time = (x) => view.from + (x - LEFT) / (width - LEFT - RIGHT) * (view.to - view.from);
const waitsHeight = () => waits.count === 0 ? 0 : Math.min(120, Math.max(24, waits.count * 4));
const layout = () => {
  const marks = AXIS, counts = marks + MARKS + GAP, queue = counts + CHART + GAP;
  const waiting = queue + CHART / 2 + GAP, lanesTop = waiting + waitsHeight() + GAP;
  return { marks, counts, queue, waiting, lanes: lanesTop };
};

function resize() {
  const ratio = window.devicePixelRatio || 1;
  width = main.clientWidth; height = main.clientHeight;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  draw2d.setTransform(ratio, 0, 0, ratio, 0, 0);
  // At once: the canvas is empty now, and would flicker.
  paint();
}
// By the kind of a use: being established, in use, draining a late reply.
const USE_COLOURS = ["--pending", "--used", "--draining"];
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["--ground", "--panel", "--ink", "--faint", "--line", "--idle", "--used", "--pending",
    "--draining", "--waiting", "--served", "--failed", "--clear", "--ready", "--close", "--other", "--limit", "--found"]) {
    colours[name] = style.getPropertyValue(name).trim();
  }
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; paint(); });
}

function paint() {
  const { marks, counts, queue, waiting, lanes: lanesTop } = layout();
  draw2d.fillStyle = colours["--ground"];
  draw2d.fillRect(0, 0, width, height);
  paintGrid(lanesTop, height);
  paintLanes(lanesTop);
  paintGrid(AXIS, lanesTop - 1);
  paintAxis();
  paintChart(counts, CHART, series.slice(0, 3), "connections", true);
  paintChart(queue, CHART / 2, series.slice(3), "waiting", false);
  paintWaits(waiting);
  paintMarks(marks);
  if (marked) {
    draw2d.fillStyle = colours["--used"] + "33";
    draw2d.fillRect(Math.min(marked.a, marked.b), AXIS, Math.abs(marked.b - marked.a), height);
  }
  if (found) {
    draw2d.strokeStyle = colours["--found"];
    draw2d.lineWidth = 2;
    const left = Math.max(LEFT, x(found.from)), right = Math.max(left + 2, x(found.to));
    if (found.lane !== undefined) {
      const y = lanesTop + found.lane * view.lane - view.top;
      if (y >= lanesTop - view.lane) draw2d.strokeRect(left - 1, y, right - left + 2, view.lane);
    } else {
      draw2d.strokeRect(left - 1, AXIS, right - left + 2, height - AXIS);
    }
  }
}

function label(text, y, colour = "--faint") {
  draw2d.fillStyle = colours[colour];
  draw2d.font = "11px system-ui, sans-serif";
  draw2d.textAlign = "right";
  draw2d.textBaseline = "middle";
  draw2d.fillText(text, LEFT - 6, y);
}

/// The times that are written on the axis, and how far they are apart, in seconds.
function axisTimes() {
  const span = (view.to - view.from) * tick, rough = span / Math.max(2, (width - LEFT) / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const times = [];
  for (let at = Math.ceil(seconds(view.from) / step) * step; at <= seconds(view.to); at += step) times.push(at);
  return { times, step };
}
/// Under the lanes: a line across a bar would look like the end of what it shows.
function paintGrid(top, bottom) {
  draw2d.fillStyle = colours["--line"];
  for (const at of axisTimes().times) draw2d.fillRect(x((at - begin) / tick), top, 1, bottom - top);
}
function paintAxis() {
  draw2d.fillStyle = colours["--panel"];
  draw2d.fillRect(0, 0, width, AXIS);
  const { times, step } = axisTimes();
  draw2d.font = "11px system-ui, sans-serif";
  draw2d.textAlign = "center"; draw2d.textBaseline = "middle";
  for (const at of times) {
    const left = x((at - begin) / tick), text = shown(at, step), half = draw2d.measureText(text).width / 2;
    draw2d.fillStyle = colours["--line"];
    draw2d.fillRect(left, AXIS - 4, 1, 4);
    draw2d.fillStyle = colours["--faint"];
    draw2d.fillText(text, Math.min(left, width - half - 3), AXIS / 2 - 1);
  }
}

/// As many decimals as the distance between two needs.
function shown(at, step) {
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step))));
  return at.toFixed(decimals) + " s";
}

function paintChart(top, tall, all, name, withLimits) {
  let max = Math.max(1, ...all.map((one) => one.max));
  const limit = limitAt(view.to);
  if (withLimits && limit.max !== 0 && limit.max <= 4 * max) max = Math.max(max, limit.max);
  const y = (value) => top + tall - value / max * tall;
  label(name, top + 6, "--ink"); label(many(max), top + 20); label("0", top + tall - 4);
  draw2d.strokeStyle = colours["--line"]; draw2d.lineWidth = 1;
  draw2d.strokeRect(LEFT, top, width - LEFT - RIGHT, tall);
  draw2d.save();
  draw2d.beginPath(); draw2d.rect(LEFT, top - 1, width - LEFT - RIGHT, tall + 2); draw2d.clip();
  for (const one of all) {
    draw2d.beginPath();
    let place = pointAt(view.from);
    for (let pixel = LEFT; pixel < width - RIGHT; pixel++) {
      const until = pointAt(time(pixel + 1)) + 1;
      const value = largest(one, place, Math.max(until, place + 1));
      place = Math.max(place, until - 1);
      if (pixel === LEFT) draw2d.moveTo(pixel, y(value)); else draw2d.lineTo(pixel, y(value));
      draw2d.lineTo(pixel + 1, y(value));
    }
    if (one.fill) {
      draw2d.lineTo(width - RIGHT, y(0)); draw2d.lineTo(LEFT, y(0)); draw2d.closePath();
      draw2d.fillStyle = colours[one.colour]; draw2d.fill();
    } else {
      draw2d.strokeStyle = colours[one.colour]; draw2d.lineWidth = 1.5; draw2d.stroke();
    }
  }
  if (withLimits) {
    draw2d.setLineDash([4, 3]);
    for (const [column, colour] of [[data.limitMax, "--used"], [data.limitMin, "--limit"],
      [data.limitConnecting, "--pending"]]) {
      draw2d.strokeStyle = colours[colour]; draw2d.lineWidth = 1;
      draw2d.beginPath();
      for (let i = 0; i < column.length; i++) {
        if (column[i] === 0) continue;
        const from = i === 0 ? LEFT : Math.max(LEFT, x(data.limitAt[i]));
        const to = i + 1 < column.length ? x(data.limitAt[i + 1]) : width - RIGHT;
        draw2d.moveTo(from, y(column[i])); draw2d.lineTo(to, y(column[i]));
      }
      draw2d.stroke();
    }
    draw2d.setLineDash([]);
  }
  draw2d.restore();
}
function limitAt(time) {
  let i = 0;
  while (i + 1 < data.limitAt.length && data.limitAt[i + 1] <= time) i++;
  return { max: data.limitMax[i], min: data.limitMin[i], connecting: data.limitConnecting[i] };
}

const waitColour = (i) => {
  const outcome = data.waitOutcome[i];
  return outcome === 0 ? "--served" : outcome === 5 || outcome === 6 ? "--other" : "--failed";
};
function paintWaits(top) {
  const tall = waitsHeight();
  if (tall === 0) return;
  label("waits", top + 6, "--ink");
  const rowHeight = tall / waits.count;
  const skip = Math.max(1, Math.floor(1 / rowHeight));
  for (let row = 0; row < waits.count; row += skip) {
    const y = top + row * rowHeight;
    each(waits, row, (left, right, i) => {
      const from = Math.max(LEFT, left), to = Math.min(width - RIGHT, right);
      if (to <= from) return;
      draw2d.fillStyle = colours[waitColour(i)];
      draw2d.fillRect(from, y, to - from, Math.max(1, rowHeight - (rowHeight > 3 ? 1 : 0)));
    });
  }
}

function paintLanes(top) {
  const from = Math.floor(view.top / view.lane);
  const to = Math.min(lanes, Math.ceil((view.top + height - top) / view.lane));
  const pad = view.lane > 5 ? 1 : 0;
  const bar = (left, right, y, colour) => {
    const a = Math.max(LEFT, left), b = Math.min(width - RIGHT, right);
    if (b <= a) return;
    draw2d.fillStyle = colour;
    draw2d.fillRect(a, y + pad, b - a, view.lane - 2 * pad);
  };
  for (let lane = from; lane < to; lane++) {
    const y = top + lane * view.lane - view.top;
    each(lives, lane, (left, right) => bar(left, right - (right - left > 3 ? 1 : 0), y, colours["--idle"]));
    each(uses, lane, (left, right, i) => {
      bar(left, right, y, colours[USE_COLOURS[data.useKind[i]]]);
      const from = Math.max(LEFT, left) + 3, room = Math.min(width - RIGHT, right) - from - 3;
      if (view.lane >= 12 && room > 12) {
        const texts = [`c${data.useNumber[i]}`];
        if (data.useHolder[i]) texts.unshift(`${texts[0]} w${data.useHolder[i]}`);
        draw2d.fillStyle = colours["--ground"];
        draw2d.font = `${view.lane < 20 ? 10 : 12}px system-ui, sans-serif`; draw2d.textAlign = "left"; draw2d.textBaseline = "middle";
        const fitting = texts.find((text) => draw2d.measureText(text).width <= room);
        if (fitting) draw2d.fillText(fitting, from, y + view.lane / 2);
      }
    });
  }
  // What is scrolled under the charts is covered by them.
  draw2d.fillStyle = colours["--ground"];
  draw2d.fillRect(0, 0, width, top - 1);
  const room = height - top, all = lanes * view.lane;
  if (all > room) {
    draw2d.fillStyle = colours["--faint"];
    draw2d.fillRect(width - 6, top + view.top / all * room, 4, Math.max(12, room / all * room));
  }
  const every = Math.max(1, Math.ceil(14 / view.lane));
  for (let lane = Math.ceil(from / every) * every; lane < to; lane += every) {
    const y = top + lane * view.lane - view.top + view.lane / 2;
    if (y > top + 4) label(`slot ${lane}`, y);
  }
}

/// What is worse is drawn later, on top; of what falls into one pixel together the first is enough.
const LAYERS = [[3], [0, 5], [1, 2, 4]];
function paintMarks(top) {
  for (const layer of LAYERS) {
    let before = -9;
    for (let i = firstMark(view.from); i < data.markAt.length && data.markAt[i] <= view.to; i++) {
      const kind = data.markKind[i];
      if (!layer.includes(kind)) continue;
      const left = x(data.markAt[i]);
      if (left - before < 1) {
        i = Math.max(i, firstMark(time(Math.floor(left) + 1)) - 1);
        continue;
      }
      before = left;
      paintMark(kind, left, top);
    }
  }
  label("marks", top + 8, "--ink");
}
function paintMark(kind, left, top) {
  draw2d.fillStyle = colours[KINDS[kind].colour];
  if (kind === 3) {
    draw2d.fillRect(left, top + 9, 1.5, 7);
    return;
  }
  draw2d.globalAlpha = 0.55; draw2d.fillRect(left, top, 1, height); draw2d.globalAlpha = 1;
  draw2d.beginPath();
  draw2d.moveTo(left - 5, top + 1); draw2d.lineTo(left + 5, top + 1); draw2d.lineTo(left, top + 10);
  draw2d.fill();
}
function firstMark(time) {
  let low = 0, high = data.markAt.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data.markAt[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}
