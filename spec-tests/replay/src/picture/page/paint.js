// ---- The whole picture.

function paint() {
  const { marks, servers: serversTop, counts, queue, holds, waiting, lanes: lanesTop } = layout();
  draw2d.fillStyle = colours["--ground"];
  draw2d.fillRect(0, 0, width, height);
  paintGrid(lanesTop, height);
  paintFaults(lanesTop, height, false);
  if (hasPool) paintLanes(lanesTop);
  paintGrid(AXIS, lanesTop - 1);
  paintFaults(AXIS, lanesTop, true);
  paintAxis();
  paintServers(serversTop);
  if (hasPool) paintPool(marks, counts, queue, holds, waiting);
  paintRange();
  paintSelected();
}

function paintPool(marks, counts, queue, holds, waits) {
  paintChart(counts, chartHeight(), states, "connections", true);
  paintChart(queue, chartHeight() / 2, [waiting], "waiting", false);
  paintHolds(holds);
  paintWaits(waits);
  paintMarks(marks);
}

/// What is worse is drawn later, on top; of what falls into one pixel together the first is enough.
const LAYERS = [
  [CHECK_OUT_FAILED],
  [SHEDDING],
  [READY, RETIRED, OTHER],
  [NOT_ESTABLISHED, LOST],
  [BACK_OFF],
  [HELD],
  [CLEAR, CLOSED],
];
function paintMarks(top) {
  for (const layer of LAYERS) {
    let before = -9;
    for (
      let i = lowerBound(data.markAt, view.from);
      i < data.markAt.length && data.markAt[i] <= view.to;
      i++
    ) {
      const kind = data.markKind[i];
      if (!layer.includes(kind)) continue;
      const left = x(data.markAt[i]);
      if (left - before < 1) {
        i = Math.max(i, lowerBound(data.markAt, time(Math.floor(left) + 1)) - 1);
        continue;
      }
      before = left;
      drawMark(draw2d, kind, left, top + MARKS / 2);
      if (KINDS[kind].line) {
        draw2d.globalAlpha = 0.4;
        draw2d.fillRect(left, top + MARKS, 1, height);
        draw2d.globalAlpha = 1;
      }
    }
  }
  label("marks", top + MARKS / 2, "--ink");
}

/// Hatched, as long as each lasted.
function paintFaults(top, bottom, isHatched) {
  draw2d.save();
  for (const fault of faults) {
    const left = Math.max(LEFT, x(fault.from));
    const right = Math.min(width - RIGHT, Math.max(left + 2, x(fault.to)));
    if (right <= LEFT || left >= width - RIGHT) continue;
    draw2d.strokeStyle = draw2d.fillStyle = colours["--fault"];
    draw2d.globalAlpha = 0.14;
    draw2d.fillRect(left, top, right - left, bottom - top);
    draw2d.globalAlpha = 1;
    if (isHatched) hatch(left, right, top);
  }
  draw2d.restore();
}

function hatch(left, right, top) {
  draw2d.save();
  draw2d.beginPath();
  draw2d.rect(left, top, right - left, MARKS);
  draw2d.clip();
  for (let at = left - MARKS; at < right; at += 5)
    lines(draw2d, 1, [
      [at, top + MARKS],
      [at + MARKS, top],
    ]);
  draw2d.restore();
}

function paintRange() {
  if (!range) return;
  const left = Math.max(LEFT, x(range.from));
  const right = Math.min(width - RIGHT, x(range.to));
  if (right <= left) return;
  draw2d.globalAlpha = 0.16;
  draw2d.fillStyle = colours["--found"];
  draw2d.fillRect(left, AXIS, right - left, height);
  draw2d.globalAlpha = 1;
}

/// A box around the pinned item in its row, and an arrow at the row's name.
function paintSelected() {
  if (!selected) return;
  draw2d.strokeStyle = draw2d.fillStyle = colours["--found"];
  draw2d.lineWidth = 2;
  const { waiting, marks, servers: serversTop, lanes: lanesTop } = layout();
  const left = Math.max(LEFT, x(selected.from));
  const right = Math.min(width - RIGHT, Math.max(left + 2, x(selected.to)));
  if (right < LEFT || left > width - RIGHT) return;
  let top = marks;
  let tall = MARKS;
  if (selected.lane !== undefined) [top, tall] = [lanesTop + selected.lane * view.lane - view.top, view.lane];
  if (selected.server !== undefined)
    [top, tall] = [serversTop + selected.server * serverLane(), serverLane()];
  if (selected.row !== undefined) {
    tall = Math.max(3, waitsHeight() / waits.count);
    top = waiting + (selected.row * waitsHeight()) / waits.count;
  }
  if (selected.lane !== undefined && top < lanesTop - view.lane) return;
  if (selected.kind === "mark" || selected.kind === "time") draw2d.fillRect(left - 1, AXIS, 2, height);
  draw2d.strokeRect(left - 1, top, right - left + 2, tall);
  const middle = top + tall / 2;
  polygon(draw2d, [LEFT - 6, middle - 5], [LEFT - 6, middle + 5], [LEFT, middle]);
}
