"use strict";
(async () => {
  const about = JSON.parse(document.getElementById("about").textContent);
  const element = (id) => document.getElementById(id);
  const main = element("main"), canvas = element("canvas"), tip = element("tip");
  const draw2d = canvas.getContext("2d");

  // ---- What is drawn: columns of 32-bit numbers, compressed.

  async function columns() {
    const text = atob(element("data").textContent.trim());
    const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
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
  const tick = about.tick / 1e9;
  const begin = data.begin[0] * 4.294967296 + data.begin[1] / 1e9; // In seconds.
  const seconds = (ticks) => begin + ticks * tick;
  const first = Math.max(0, (about.start / 1e9 - begin) / tick);
  const last = Math.max(first + 1, (about.end / 1e9 - begin) / tick);

  // ---- Intervals by row, each row in order of time, so that what is in view is found quickly.

  function rows(row, end, length) {
    let count = 0;
    for (let i = 0; i < row.length; i++) if (row[i] >= count) count = row[i] + 1;
    const starts = new Uint32Array(count + 1);
    for (let i = 0; i < row.length; i++) starts[row[i] + 1]++;
    for (let r = 0; r < count; r++) starts[r + 1] += starts[r];
    const order = new Uint32Array(row.length), next = starts.slice(0, count);
    for (let i = 0; i < row.length; i++) order[next[row[i]]++] = i;
    return { count, starts, order, end, length };
  }
  const lives = rows(data.lifeSlot, data.lifeEnd, data.lifeLength);
  const uses = rows(data.useSlot, data.useEnd, data.useLength);
  const waits = rows(data.waitRow, data.waitEnd, data.waitLength);
  const lanes = Math.max(1, lives.count, uses.count);

  /// The first interval of a row, from place `low` on, that ends after `time`.
  function firstAfter(set, row, time, low) {
    let high = set.starts[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (set.end[set.order[middle]] <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /// Calls `draw(left, right, index, many)` for what is in view; what falls into one pixel together
  /// is drawn once. Its work depends on the pixels, not on the length of the trace.
  function each(set, row, draw) {
    if (row >= set.count) return;
    const end = set.starts[row + 1];
    let at = firstAfter(set, row, view.from, set.starts[row]);
    while (at < end) {
      const i = set.order[at];
      const start = set.end[i] - set.length[i];
      if (start > view.to) return;
      const left = x(start), right = x(set.end[i]);
      if (right - left >= 1) {
        draw(left, right, i, false);
        at++;
      } else {
        const pixel = Math.floor(left) + 1;
        const next = firstAfter(set, row, time(pixel), at + 1);
        draw(left, Math.max(right, left + 1), i, next - at > 1);
        at = next;
      }
    }
  }

  // ---- Largest counts of blocks of points, for charts of a million of them.

  const BLOCK = 64;
  const series = [
    { name: "connections", column: data.pointTotal, colour: "--idle", fill: true },
    { name: "in use", column: data.pointInUse, colour: "--used" },
    { name: "being established", column: data.pointPending, colour: "--pending" },
    { name: "waiting", column: data.pointWaiting, colour: "--waiting", own: true },
  ];
  for (const one of series) {
    const blocks = new Uint32Array(Math.ceil(one.column.length / BLOCK));
    for (let i = 0; i < one.column.length; i++) {
      const block = (i / BLOCK) | 0;
      if (one.column[i] > blocks[block]) blocks[block] = one.column[i];
    }
    one.blocks = blocks;
    one.max = blocks.reduce((a, b) => Math.max(a, b), 0);
  }
  function largest(one, from, to) {
    let max = 0, i = from;
    while (i < to) {
      if (i % BLOCK === 0 && i + BLOCK <= to) { max = Math.max(max, one.blocks[i / BLOCK]); i += BLOCK; }
      else { max = Math.max(max, one.column[i]); i++; }
    }
    return max;
  }
  function pointAt(time) {
    let low = 0, high = data.pointAt.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.pointAt[middle] <= time) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  }

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
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["--ground", "--panel", "--ink", "--faint", "--line", "--idle", "--used", "--pending",
      "--waiting", "--served", "--failed", "--clear", "--ready", "--close", "--other", "--limit", "--found"]) {
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
        bar(left, right, y, colours[data.useKind[i] === 0 ? "--pending" : "--used"]);
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

  // ---- What lies under the pointer, in words.

  const span = (ticks) => {
    const value = ticks * tick;
    if (value >= 1) return value.toPrecision(3) + " s";
    if (value >= 1e-3) return (value * 1e3).toPrecision(3) + " ms";
    return (value * 1e6).toPrecision(3) + " µs";
  };
  const under = (set, row, at, reach) => {
    if (row < 0 || row >= set.count) return -1;
    const place = firstAfter(set, row, at - reach, set.starts[row]);
    if (place >= set.starts[row + 1]) return -1;
    const i = set.order[place];
    return set.end[i] - set.length[i] <= at + reach ? i : -1;
  };
  function describe(px, py) {
    const { marks, counts, queue, waiting, lanes: lanesTop } = layout();
    const at = time(px), reach = time(px + 1) - at;
    const when = shown(seconds(at), (view.to - view.from) * tick / width);
    if (py >= marks && py < counts) {
      const i = firstMark(at - 5 * reach);
      if (i < data.markAt.length && data.markAt[i] <= at + 5 * reach) {
        return `${shown(seconds(data.markAt[i]), 1e-6)}, step ${data.markStep[i]}\n${texts[data.markText[i]]}`;
      }
    }
    if (py >= counts && py < waiting - GAP) {
      const i = pointAt(at), limit = limitAt(at);
      const [total, used, pending, waits] = series.map((one) => one.column[i]);
      return `${when}\n${total} of ${limit.max || "any number of"} connections (at least ${limit.min}):\n` +
        `${used} in use, ${total - used - pending} idle, ${pending} of ${limit.connecting} being established\n` +
        `${waits} requests wait`;
    }
    if (py >= waiting && py < waiting + waitsHeight()) {
      const row = Math.floor((py - waiting) / (waitsHeight() / waits.count));
      const i = under(waits, row, at, reach);
      if (i >= 0) {
        const outcome = OUTCOMES[data.waitOutcome[i]];
        const got = data.waitConnection[i] ? ` with c${data.waitConnection[i]}` : "";
        return `w${data.waitId[i]} waited ${span(data.waitLength[i])}: ${outcome}${got}\n` +
          `from ${shown(seconds(data.waitEnd[i] - data.waitLength[i]), 1e-6)}`;
      }
    }
    if (py >= lanesTop) {
      const lane = Math.floor((py - lanesTop + view.top) / view.lane);
      const use = under(uses, lane, at, reach), life = under(lives, lane, at, reach);
      if (life < 0 && use < 0) return lane < lanes ? `${when}\nslot ${lane}: no connection` : null;
      const lines = [];
      if (use >= 0) {
        const holder = data.useHolder[use] ? ` by w${data.useHolder[use]}` : "";
        const doing = data.useKind[use] === 0 ? "being established" : `in use${holder}`;
        lines.push(`c${data.useNumber[use]} ${doing} for ${span(data.useLength[use])}`);
        lines.push(`from ${shown(seconds(data.useEnd[use] - data.useLength[use]), 1e-6)}`);
      } else {
        lines.push(`c${data.lifeNumber[life]} idle at ${when}`);
      }
      if (life >= 0) lines.push(`it was there for ${span(data.lifeLength[life])}`);
      return lines.join("\n");
    }
    return when;
  }
  function hover(px, py) {
    const text = px < LEFT || marked ? null : describe(px, py);
    hovered = text;
    tip.hidden = text === null;
    if (text === null) return;
    tip.textContent = text;
    const right = px + 16 + tip.offsetWidth > width, below = py + 16 + tip.offsetHeight > height;
    tip.style.left = `${Math.max(0, right ? px - tip.offsetWidth - 10 : px + 16)}px`;
    tip.style.top = `${Math.max(0, below ? py - tip.offsetHeight - 10 : py + 16)}px`;
  }

  // ---- Moving about.

  const SHORTEST = Math.max(20, 2e-6 / tick);
  function show(from, to) {
    const whole = last - first, wanted = Math.min(Math.max(to - from, Math.min(SHORTEST, whole)), whole);
    const middle = (from + to) / 2;
    view.from = Math.min(Math.max(middle - wanted / 2, first), last - wanted);
    view.to = view.from + wanted;
    status();
    redraw();
  }
  function zoom(factor, px = LEFT + (width - LEFT - RIGHT) / 2) {
    const at = time(px), length = (view.to - view.from) * factor;
    const share = (at - view.from) / (view.to - view.from);
    show(at - share * length, at + (1 - share) * length);
  }
  const pan = (share) => { const d = share * (view.to - view.from); show(view.from + d, view.to + d); };
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
  function status(note = "") {
    const digits = (view.to - view.from) * tick / 1000;
    element("status").textContent = note ||
      `${shown(seconds(view.from), digits)} to ${shown(seconds(view.to), digits)} ` +
      `(${span(view.to - view.from)} of ${span(last - first)})`;
  }

  // ---- Finding.

  function find(query) {
    const text = query.trim().toLowerCase();
    const after = found && found.query === text ? found.from : -1;
    found = locate(text, after) || locate(text, -1);
    if (!found) { status(`“${query}” was not found`); redraw(); return; }
    found.query = text;
    const length = Math.max((found.to - found.from) * 3, (view.to - view.from) / 4, SHORTEST);
    const middle = (found.from + found.to) / 2;
    show(middle - length / 2, middle + length / 2);
    if (found.lane !== undefined) {
      const room = height - layout().lanes;
      view.top = Math.max(0, found.lane * view.lane - room / 2);
      scroll(0);
    }
    status(`${found.text} · ${shown(seconds(found.from), 1e-6)}`);
  }
  function locate(text, after) {
    const number = Number(text.slice(1));
    if (/^c\d+$/.test(text)) {
      const i = data.lifeNumber.indexOf(number);
      if (i < 0) return null;
      const from = data.lifeEnd[i] - data.lifeLength[i];
      return { from, to: data.lifeEnd[i], lane: data.lifeSlot[i], text: `connection ${text}` };
    }
    if (/^w\d+$/.test(text)) {
      const wait = data.waitId.indexOf(number), use = data.useHolder.indexOf(number);
      if (wait >= 0 && (use < 0 || after < data.waitEnd[wait] - data.waitLength[wait])) {
        const from = data.waitEnd[wait] - data.waitLength[wait];
        return { from, to: data.waitEnd[wait], text: `${text} waited ${span(data.waitLength[wait])}` };
      }
      if (use < 0) return null;
      const from = data.useEnd[use] - data.useLength[use];
      return { from, to: data.useEnd[use], lane: data.useSlot[use], text: `${text} held c${data.useNumber[use]}` };
    }
    if (/^[\d.]+s?$/.test(text)) {
      const at = (parseFloat(text) - begin) / tick;
      return { from: at, to: at, text: "that time" };
    }
    for (let i = 0; i < data.markAt.length; i++) {
      if (data.markAt[i] > after && texts[data.markText[i]].toLowerCase().includes(text)) {
        return { from: data.markAt[i], to: data.markAt[i], text: texts[data.markText[i]] };
      }
    }
    return null;
  }
  function failure(forwards) {
    const bad = (i) => data.markKind[i] === 1 || data.markKind[i] === 3 || data.markKind[i] === 4;
    const here = found ? found.from : (forwards ? view.from - 1 : view.to);
    let i = forwards ? firstMark(here + 1) : firstMark(here) - 1;
    while (i >= 0 && i < data.markAt.length && !bad(i)) i += forwards ? 1 : -1;
    if (i < 0 || i >= data.markAt.length) { status(`no ${forwards ? "later" : "earlier"} failure`); return; }
    const at = data.markAt[i], half = (view.to - view.from) / 2;
    found = { from: at, to: at, query: null, text: "" };
    if (at < view.from || at > view.to) show(at - half, at + half); else redraw();
    status(`step ${data.markStep[i]}: ${texts[data.markText[i]]} · ${shown(seconds(at), 1e-6)}`);
  }

  // ---- Hands and keys.

  main.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = main.getBoundingClientRect();
    const overLanes = event.clientY - box.top >= layout().lanes;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
    else if (event.ctrlKey || event.metaKey || !overLanes) {
      zoom(Math.exp(event.deltaY / 400), Math.max(LEFT, event.clientX - box.left));
    } else scroll(event.deltaY);
  }, { passive: false });
  let drag = null;
  main.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    main.focus();
    const box = main.getBoundingClientRect(), px = event.clientX - box.left;
    drag = { x: event.clientX, y: event.clientY };
    if (event.shiftKey) marked = { a: px, b: px };
    main.setPointerCapture(event.pointerId);
    main.classList.add("dragging");
  });
  main.addEventListener("pointermove", (event) => {
    const box = main.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    if (!drag) return hover(px, py);
    tip.hidden = true;
    if (marked) { marked.b = px; return redraw(); }
    pan((drag.x - event.clientX) / (width - LEFT - RIGHT));
    scroll(drag.y - event.clientY);
    drag = { x: event.clientX, y: event.clientY };
  });
  main.addEventListener("pointerup", () => {
    if (marked && Math.abs(marked.a - marked.b) > 3) {
      show(time(Math.min(marked.a, marked.b)), time(Math.max(marked.a, marked.b)));
    }
    marked = drag = null;
    main.classList.remove("dragging");
    redraw();
  });
  main.addEventListener("pointerleave", () => { tip.hidden = true; });
  main.addEventListener("dblclick", (event) => zoom(0.4, event.clientX - main.getBoundingClientRect().left));
  const KEYS = {
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), a: () => pan(-0.5), d: () => pan(0.5),
    ArrowUp: () => scroll(-3 * view.lane), ArrowDown: () => scroll(3 * view.lane),
    PageUp: () => scroll(-height / 2), PageDown: () => scroll(height / 2),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(first, last),
    Home: () => show(first, first + view.to - view.from), End: () => show(last - view.to + view.from, last),
    "[": () => laneHeight(0.7), "]": () => laneHeight(1.5), n: () => failure(true), p: () => failure(false),
    "/": () => element("query").focus(), t: () => theme(), "?": () => element("help").showModal(),
    Escape: () => { found = null; status(); redraw(); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (element("help").open) return;
    const action = KEYS[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  element("find").addEventListener("submit", (event) => { event.preventDefault(); find(element("query").value); });
  element("failure").addEventListener("click", () => failure(true));
  element("in").addEventListener("click", () => zoom(0.5));
  element("out").addEventListener("click", () => zoom(2));
  element("all").addEventListener("click", () => show(first, last));
  element("keys").addEventListener("click", () => element("help").showModal());
  element("theme").addEventListener("click", () => theme());
  function theme(dark = !document.documentElement.classList.contains("dark")) {
    document.documentElement.classList.toggle("dark", dark);
    readColours();
    redraw();
  }

  // ---- Beginning.

  /// Few lanes fill the page, and many are as small as can still be told apart.
  function fitLanes() {
    view.lane = Math.min(32, Math.max(lanes > 400 ? 4 : 8, Math.floor((main.clientHeight - layout().lanes) / lanes)));
  }
  /// Of outcomes that are failures.
  const WHY = { 1: "timed out", 2: "met a cleared or paused pool", 3: "got no connection established", 4: "met a closed pool" };
  /// What somebody wants to know first.
  function verdict() {
    const counts = new Array(OUTCOMES.length).fill(0);
    let longest = 0;
    for (let i = 0; i < data.waitOutcome.length; i++) {
      counts[data.waitOutcome[i]]++;
      longest = Math.max(longest, data.waitLength[i]);
    }
    const failed = counts.map((count, outcome) => [count, WHY[outcome]]).filter(([count, why]) => count > 0 && why);
    const total = failed.reduce((sum, [count]) => sum + count, 0);
    const plural = (count, what) => `${many(count)} ${what}${count === 1 ? "" : "s"}`;
    const queue = series[3].max === 0 ? "Nobody waited."
      : `At most ${plural(series[3].max, "request")} waited at once, for ${span(longest)} at the longest.`;
    if (total === 0) return `No check-out failed. ${queue}`;
    const reasons = failed.map(([count, why]) => `${many(count)} ${why}`).join(", ");
    const at = data.markAt[data.markKind.indexOf(3)];
    const first = at === undefined ? "" : `; the first at ${shown(seconds(at), 1e-3)}`;
    return `${plural(total, "check-out")} failed: ${reasons}${first}. ${queue}`;
  }

  const origin = about.origin ? `, recorded ${new Date(about.origin + begin * 1000).toISOString()}` : "";
  element("title").textContent = `Pool of ${about.address ?? "an address that is not told"}`;
  document.title = element("title").textContent;
  element("subtitle").textContent = `${many(about.steps)} steps, ${many(lanes)} slots` +
    (about.program ? `, by ${about.program}` : "") + origin + (about.isNew ? "" : ", from a state");
  for (const [colour, text] of [["--idle", "idle"], ["--used", "in use"], ["--pending", "being established"],
    ["--waiting", "waiting"], ["--served", "wait, served"], ["--failed", "failed, or a clear"],
    ["--ready", "ready"], ["--limit", "dashed: limits"]]) {
    const item = document.createElement("li"), box = document.createElement("i");
    box.style.background = `var(${colour})`;
    item.append(box, text);
    element("legend").append(item);
  }
  element("subtitle").title = element("subtitle").textContent;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  prefersDark.addEventListener("change", (event) => theme(event.matches));
  element("verdict").textContent = verdict();
  theme(prefersDark.matches);
  fitLanes();
  new ResizeObserver(resize).observe(main);
  status();
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has("find")) { resize(); find(wanted.get("find")); }
  if (wanted.get("theme")) theme(wanted.get("theme") === "dark");
  document.documentElement.dataset.ready = "true";
})();
