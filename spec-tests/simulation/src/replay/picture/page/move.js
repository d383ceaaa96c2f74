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
