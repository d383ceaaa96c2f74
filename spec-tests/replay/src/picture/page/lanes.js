// ---- A lane for each slot.

function paintLanes(top) {
  const from = Math.floor(view.top / view.lane);
  const to = Math.min(lanes, Math.ceil((view.top + height - top) / view.lane));
  for (let lane = from; lane < to; lane++) paintLane(lane, top + lane * view.lane - view.top);
  // What is scrolled under the charts is covered by them.
  draw2d.fillStyle = colours["--ground"];
  draw2d.fillRect(0, 0, width, top - 1);
  paintPosition(top);
  const every = Math.max(1, Math.ceil(14 / view.lane));
  for (let lane = Math.ceil(from / every) * every; lane < to; lane += every) {
    const y = top + lane * view.lane - view.top + view.lane / 2;
    if (y > top + 4) label(`slot ${lane}`, y, lane === selected?.lane ? "--ink" : "--faint");
  }
}
function paintPosition(top) {
  const room = height - top;
  const all = lanes * view.lane;
  if (all <= room) return;
  draw2d.fillStyle = colours["--faint"];
  draw2d.fillRect(width - 6, top + (view.top / all) * room, 4, Math.max(12, (room / all) * room));
}

function paintLane(lane, y) {
  const pad = view.lane > 5 ? 1 : 0;
  const tall = view.lane - 2 * pad;
  const bar = (left, right, colour, share = 1) => {
    // Whole pixels: colours stay what they are.
    const a = Math.max(LEFT, Math.round(left));
    const b = Math.min(width - RIGHT, Math.max(Math.round(right), Math.round(left) + 1));
    if (b <= a) return;
    draw2d.fillStyle = colour;
    const high = Math.max(1, share * tall);
    draw2d.fillRect(a, y + pad + tall - high, b - a, high);
  };
  each(lives, lane, (left, right) => bar(left, right - (right - left > 3 ? 1 : 0), colours["--idle"]));
  each(uses, lane, (left, right, i, place, count) => {
    if (data.useKind[i] !== IN_USE) {
      bar(left, right, colours[USE_COLOURS[data.useKind[i]]]);
    } else if (count === 1 && uses.size(i) === 1) {
      bar(left, right, colours[SHADES[shadeOf(data.useLength[i])]]);
    } else {
      // Many uses: as high as the share of time in use, shaded as their mean.
      const used = usedUpTo[place + count] - usedUpTo[place];
      const mean = uses.size(i) > 1 ? uses.mean(i) : used / count;
      const whole = Math.max(time(right) - time(left), time(1) - time(0));
      bar(left, right, colours[SHADES[shadeOf(mean)]], Math.min(1, used / whole));
    }
    if (view.lane >= 12 && right - left > 18) paintName(i, left, right, y);
  });
}
function paintName(i, left, right, y) {
  const from = Math.max(LEFT, left) + 3;
  const room = Math.min(width - RIGHT, right) - from - 3;
  const names = [`c${data.useNumber[i]}`];
  if (uses.size(i) > 1) names.unshift(`${names[0]} ×${uses.size(i)}`);
  else if (data.useHolder[i]) names.unshift(`${names[0]} w${data.useHolder[i]}`);
  draw2d.font = `${view.lane < 20 ? 10 : 12}px system-ui, sans-serif`;
  draw2d.textAlign = "left";
  draw2d.textBaseline = "middle";
  const fitting = names.find((text) => draw2d.measureText(text).width <= room);
  if (!fitting) return;
  const kind = data.useKind[i];
  draw2d.fillStyle = textOn(
    colours[kind === IN_USE ? SHADES[shadeOf(uses.mean(i))] : USE_COLOURS[kind]],
  );
  draw2d.fillText(fitting, from, y + view.lane / 2);
}
