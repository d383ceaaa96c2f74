// ---- Charts over time: counts with their limits, hold times, waits.

function label(text, y, colour = "--faint") {
  draw2d.fillStyle = colours[colour];
  draw2d.font = "11px system-ui, sans-serif";
  draw2d.textAlign = "right";
  draw2d.textBaseline = "middle";
  draw2d.fillText(text, LEFT - 6, y);
}
function frame(top, tall) {
  draw2d.strokeStyle = colours["--line"];
  draw2d.lineWidth = 1;
  draw2d.strokeRect(LEFT, top, width - LEFT - RIGHT, tall);
}

/// Under the lanes: a line across a bar would look like the end of what it shows.
function paintGrid(top, bottom) {
  draw2d.fillStyle = colours["--line"];
  for (const at of axisTimes().times) draw2d.fillRect(x(ticksOf(at)), top, 1, bottom - top);
}
function paintAxis() {
  draw2d.fillStyle = colours["--panel"];
  draw2d.fillRect(0, 0, width, AXIS);
  label(wall ? zone : "seconds", AXIS / 2 - 1);
  const { times, step } = axisTimes();
  draw2d.textAlign = "center";
  for (const at of times) {
    const left = x(ticksOf(at));
    const text = shown(at, step);
    const half = draw2d.measureText(text).width / 2;
    draw2d.fillStyle = colours["--line"];
    draw2d.fillRect(left, AXIS - 4, 1, 4);
    if (left - half < LEFT - 4) continue;
    draw2d.fillStyle = colours["--faint"];
    draw2d.fillText(text, Math.min(left, width - half - 3), AXIS / 2 - 1);
  }
}

function paintChart(top, tall, all, name, withLimits) {
  let max = Math.max(1, ...all.map((one) => one.max));
  const limit = limitAt(view.to);
  if (withLimits && limit.max !== 0 && limit.max <= 4 * max) max = Math.max(max, limit.max);
  const y = (value) => top + tall - (value / max) * tall;
  frame(top, tall);
  draw2d.save();
  draw2d.beginPath();
  draw2d.rect(LEFT, top - 1, width - LEFT - RIGHT, tall + 2);
  draw2d.clip();
  for (const one of all) paintArea(one, y);
  for (const one of all) paintMaximum(one, y);
  if (withLimits) paintLimits(y);
  draw2d.restore();
  // Each number stands beside the line that it names.
  label(many(max), top);
  label("0", top + tall);
  label(name, top + tall / 2, "--ink");
}
/// Through the average or the maximum of each pixel.
function path(of, one, y) {
  draw2d.beginPath();
  for (let pixel = LEFT; pixel < width - RIGHT; pixel++) {
    const value = y(of(one, time(pixel), time(pixel + 1)));
    draw2d.lineTo(pixel, value);
    draw2d.lineTo(pixel + 1, value);
  }
}
function paintArea(one, y) {
  path(average, one, y);
  draw2d.lineTo(width - RIGHT, y(0));
  draw2d.lineTo(LEFT, y(0));
  draw2d.fillStyle = colours[one.colour];
  draw2d.fill();
}
function paintMaximum(one, y) {
  path(maximum, one, y);
  draw2d.strokeStyle = colours[one.colour];
  draw2d.lineWidth = 1;
  draw2d.stroke();
}
function paintLimits(y) {
  draw2d.setLineDash([4, 3]);
  for (const [column, colour] of [
    [data.limitMax, "--ink"],
    [data.limitMin, "--ink"],
    [data.limitConnecting, "--pending"],
  ]) {
    draw2d.strokeStyle = colours[colour];
    draw2d.lineWidth = 1;
    draw2d.beginPath();
    for (let i = 0; i < column.length; i++) {
      if (column[i] === 0) continue;
      const from = i === 0 ? LEFT : Math.max(LEFT, x(data.limitAt[i]));
      const to = i + 1 < column.length ? x(data.limitAt[i + 1]) : width - RIGHT;
      draw2d.moveTo(from, y(column[i]));
      draw2d.lineTo(to, y(column[i]));
    }
    draw2d.stroke();
  }
  draw2d.setLineDash([]);
}

/// How many uses of which length end in each pixel: darker where there are more.
function paintHolds(top) {
  if (!heat) return;
  const all = heatHeight();
  const across = Math.max(1, Math.floor(width - LEFT - RIGHT));
  const counts = new Uint32Array(across * HEAT_ROWS);
  const [low, high] = between(data.useEnd, view.from, view.to);
  const scale = across / (view.to - view.from);
  let most = 0;
  for (let i = low; i < high; i++) {
    if (data.useKind[i] !== IN_USE) continue;
    const column = Math.min(across - 1, Math.floor((data.useEnd[i] - view.from) * scale));
    const count = (counts[column * HEAT_ROWS + heat.row[i]] += uses.size(i));
    if (count > most) most = count;
  }
  frame(top, all);
  draw2d.fillStyle = colours["--used"];
  const tall = all / HEAT_ROWS;
  for (let place = 0; place < counts.length; place++) {
    if (counts[place] === 0) continue;
    const row = place % HEAT_ROWS;
    const column = (place - row) / HEAT_ROWS;
    draw2d.globalAlpha = 0.25 + (0.75 * Math.log1p(counts[place])) / Math.log1p(most);
    draw2d.fillRect(LEFT + column, top + all - (row + 1) * tall, most > 3 ? 1 : 2, tall);
  }
  draw2d.globalAlpha = 1;
  label(`≥ ${span(heat.longest)}`, top + 2);
  label(`≤ ${span(heat.shortest)}`, top + all - 2);
  label("held for", top + all / 2, "--ink");
}

function paintWaits(top) {
  const tall = waitsHeight();
  if (tall === 0) return;
  label("waits", top + tall / 2, "--ink");
  const rowHeight = tall / waits.count;
  const skip = Math.max(1, Math.floor(1 / rowHeight));
  for (let row = 0; row < waits.count; row += skip) {
    const y = top + row * rowHeight;
    each(waits, row, (left, right, i) => {
      const from = Math.max(LEFT, Math.round(left));
      const to = Math.min(width - RIGHT, Math.max(Math.round(right), Math.round(left) + 1));
      if (to <= from) return;
      draw2d.fillStyle = colours[waitColour(data.waitOutcome[i])];
      draw2d.fillRect(from, y, to - from, Math.max(1, rowHeight - (rowHeight > 3 ? 1 : 0)));
    });
  }
}
