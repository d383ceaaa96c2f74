// ---- Finding and selecting.

/// Pins an item. `how`: "closely" zooms to it; "near" moves there if it is not in view; otherwise the
/// view stays.
function select(item, how = "") {
  [selected, range] = [item, null];
  const length = item.to - item.from;
  const inView = item.to >= view.from && item.from <= view.to;
  const middle = (item.from + item.to) / 2;
  const now = view.to - view.from;
  if (how === "closely") {
    const half = Math.max(length * 1.5, length === 0 ? Math.min(now, (last - first) / 40) / 2 : SHORTEST);
    show(middle - half, middle + half);
  } else if (how === "near" && (!inView || length < now / 300)) {
    const half = Math.max(length * 5, Math.min(now, length === 0 ? now : length * 50) / 2);
    show(middle - half, middle + half);
  }
  pin();
  if (item.lane !== undefined && how !== "") scrollTo(item.lane);
  status(`${title(item)} · ${both(item.from)}`);
  redraw();
}
function scrollTo(lane) {
  const room = height - layout().lanes;
  const top = lane * view.lane;
  if (top < view.top || top + view.lane > view.top + room) view.top = Math.max(0, top - room / 2);
  scroll(0);
}

let found = null; // The last search: its text and its item.
function find(query) {
  const text = query.trim().toLowerCase();
  if (text === "") return;
  const after = found?.text === text ? found.item : null;
  const item = locate(text, after) ?? locate(text, null);
  found = item && { text, item };
  if (item) select(item, "closely");
  else {
    status(`“${query}” was not found${about.joinedBelow ? ": it may be joined with others" : ""}`);
    redraw();
  }
}
/// What a text means: c3, w17, 17, 1.5s, 03:07:12, longest, or part of a mark; the next one `after` an item.
function locate(text, after) {
  const named = /^([cw]?)(\d+)$/.exec(text);
  if (named) {
    const number = Number(named[2]);
    const item = named[1] === "c" ? connection(number) : request(number, after);
    if (item || named[1]) return item;
  }
  if (/^(longest|slowest|worst)$/.test(text)) {
    const all = longest(waits, hasWaited, 0, last, 50);
    const next = all.findIndex((i) => isSame(waitItem(i), after)) + 1;
    return all.length ? waitItem(all[next % all.length]) : null;
  }
  const at = parseTime(text);
  if (at !== null) return ticksOf(at) < first - 1 || ticksOf(at) > last + 1 ? null : timeItem(ticksOf(at));
  const begin = after?.kind === "mark" ? after.index + 1 : 0;
  for (let i = begin; i < data.markAt.length; i++) {
    if (`${KINDS[data.markKind[i]].name} ${texts[data.markText[i]]}`.toLowerCase().includes(text))
      return markItem(i);
  }
  const fault = faults.findIndex((one) => one.name.includes(text));
  if (fault >= 0) return faultItem(fault);
  const from = after?.kind === "role" ? after.index + 1 : 0;
  const role = roleSpans.findIndex(
    (one, i) =>
      i >= from && `${servers[one.server]} ${one.role.name} ${one.text} ${one.removed ?? ""}`.toLowerCase().includes(text),
  );
  return role < 0 ? null : roleItem(role);
}
const connection = (number) => {
  const i = lifeOf(number);
  return i < 0 ? null : lifeItem(i);
};
/// Its wait, and then its use.
function request(number, after) {
  const wait = waitOf(number);
  const use = useOf(number);
  if (wait >= 0 && !(use >= 0 && after?.kind === "wait" && after.index === wait)) return waitItem(wait);
  return use < 0 ? null : useItem(use);
}

// ---- Walking from one failure to the next.

/// The marks of these kinds, and faults, in the order of time.
function walk(forwards, isWanted = (kind) => KINDS[kind].walked, withFaults = true) {
  const here = selected && !range ? selected.from : forwards ? view.from - 1 : view.to + 1;
  const step = forwards ? 1 : -1;
  // All marks of one time are one stop: the panel lists them.
  let i = forwards
    ? lowerBound(data.markAt, Math.floor(here) + 1)
    : lowerBound(data.markAt, Math.ceil(here)) - 1;
  while (i >= 0 && i < data.markAt.length && !isWanted(data.markKind[i])) i += step;
  const mark = i >= 0 && i < data.markAt.length ? markAt(data.markAt[i], 0.5, isWanted) : null;
  const stops = [
    ...faults.map((_, i) => ({ at: faultItem(i).from, item: () => faultItem(i) })),
    ...serverStops.map(({ i, at }) => ({ at, item: () => ({ ...roleItem(i), from: at, to: Math.max(at, roleItem(i).to) }) })),
  ];
  const ahead = stops
    .filter(({ at }) => withFaults && (forwards ? at > here : at < here))
    .sort((a, b) => a.at - b.at);
  const fault = (forwards ? ahead[0] : ahead.at(-1))?.item() ?? null;
  const isFaultNext = fault && (!mark || (forwards ? fault.from < mark.from : fault.from > mark.from));
  const next = isFaultNext ? fault : mark;
  if (!next) {
    status(`no ${forwards ? "later" : "earlier"} failure`);
    return;
  }
  select(next, next.from < view.from || next.from > view.to ? "near" : "");
}
