// ---- The panel without a pinned item: percentiles, the longest waits, leaks, clears, of all or of a range.

/// A row for each kind of duration; each number leads to an interval of that length.
function percentileTable(from, to) {
  const table = node("table");
  const head = node("tr", node("th"));
  for (const percent of PERCENTS) head.append(node("th", percent === 100 ? "max" : `p${percent}`));
  table.append(head);
  for (const measured of MEASURED) {
    const { count, values } = percentiles(measured, from, to);
    const row = node("tr", node("th", `${measured.name} (${many(count)})`));
    for (const { length, index } of values) {
      const item = index < 0 ? null : measured.kind === "wait" ? waitItem(index) : useItem(index);
      row.append(node("td", item ? linkTo(item, span(length)) : span(length)));
    }
    table.append(row);
  }
  return table;
}
function longestWaits(from, to, count = 10) {
  const found = longest(waits, hasWaited, from, to, count);
  return listed(
    "longest waits",
    found.map((i) => [
      linkTo(waitItem(i), `w${data.waitId[i]} ${span(waits.mean(i))}`),
      ` ${OUTCOMES[data.waitOutcome[i]]}; ${whyWaited(i)}`,
    ]),
    count,
  );
}
function longestUses(from, to) {
  const found = longest(uses, (i) => data.useKind[i] === IN_USE, from, to, 5);
  return listed(
    "longest uses",
    found.map((i) => [linkTo(useItem(i)), notes.has(i) ? `: ${notes.get(i)}` : ""]),
  );
}
/// Where connections were checked out that were held for the longest, together.
function heldByPlace(from, to) {
  if (!data.usePlace.some(Boolean)) return "";
  const places = new Map();
  let all = 0;
  for (let i = lowerBound(data.useEnd, from); i < data.useEnd.length; i++) {
    const within = Math.min(to, data.useEnd[i]) - Math.max(from, startOf(uses, i));
    if (data.useKind[i] !== IN_USE || within < 0) continue;
    const held = uses.size(i) > 1 ? (data.useLength[i] ? within / data.useLength[i] : 1) * uses.size(i) * uses.mean(i) : within;
    const place = places.get(data.usePlace[i]) ?? { count: 0, sum: 0, longest: i };
    places.set(data.usePlace[i], place);
    place.count += uses.size(i);
    place.sum += held;
    if (uses.mean(i) > uses.mean(place.longest)) place.longest = i;
    all += held;
  }
  return listed(
    "held connections, by place",
    [...places]
      .sort(([, a], [, b]) => b.sum - a.sum)
      .map(([place, { count, sum, longest }]) => [
        `${texts[place] || "an unknown place"}: ${Math.round((100 * sum) / (all || 1))} % of the time in use, ` +
          `${plural(count, "use")}, `,
        linkTo(useItem(longest), `${span(uses.mean(longest))} at the longest`),
      ]),
    5,
  );
}
function marksOf(kind, name, from, to) {
  const found = [];
  const [low, high] = between(data.markAt, from, to);
  for (let i = low; i < high; i++) if (data.markKind[i] === kind) found.push(i);
  return listed(
    `${name}: ${many(found.length)}`,
    found.map((i) => linkTo(markItem(i), `${shown(seconds(data.markAt[i]), 1e-3)} ${title(markItem(i))}`)),
    6,
  );
}

/// Counts and percentiles of a time.
function statistics(from, to) {
  if (!hasPool) return [changesOf(from, to, 50)];
  const [low, high] = between(data.waitEnd, from, to);
  const outcomes = new Array(OUTCOMES.length).fill(0);
  for (let i = low; i < high; i++) outcomes[data.waitOutcome[i]] += waits.size(i);
  const atOnce = servedAtOnce(from, to);
  const marks = new Array(KINDS.length).fill(0);
  const [markLow, markHigh] = between(data.markAt, from, to);
  for (let i = markLow; i < markHigh; i++) marks[data.markKind[i]]++;
  const failed = outcomes
    .map((count, outcome) => (hasFailed(outcome) && count > 0 ? `${many(count)} ${OUTCOMES[outcome]}` : ""))
    .filter(Boolean);
  let created = 0;
  let closed = 0;
  for (let i = 0; i < data.lifeEnd.length; i++) {
    const start = startOf(lives, i);
    if (start >= from && start <= to) created++;
    if (data.lifeWhy[i] !== 0 && data.lifeEnd[i] >= from && data.lifeEnd[i] <= to + 1) closed++;
  }
  const told = (one) =>
    `${average(one, from, to).toFixed(1)} on average, ${many(maximum(one, from, to))} at most`;
  const requests = atOnce + outcomes.reduce((sum, count) => sum + count, 0);
  return [
    facts(
      ["requests", `${many(requests)}, ${many(Math.round(requests / ((to - from) * tick)))} a second`],
      ["served", `${many(atOnce)} at once, ${many(outcomes[SERVED])} after a wait`],
      ["failed", failed.length ? failed.join(", ") : "none"],
      ["in use", told(inUse)],
      ["waiting", told(waiting)],
      ["connections", `${many(created)} created, ${many(closed)} closed`],
      [
        "marks",
        marks
          .map((count, kind) => (count ? `${many(count)} ${KINDS[kind].name}` : ""))
          .filter(Boolean)
          .join(", ") || "none",
      ],
    ),
    servers.length ? changesOf(from, to, 10) : "",
    percentileTable(from, to),
    longestWaits(from, to),
    heldByPlace(from, to),
    longestUses(from, to),
  ];
}

/// What is not shown one by one.
function joined() {
  if (!about.joinedBelow) return "";
  const below = span(about.joinedBelow / about.tick);
  return node(
    "p",
    `A long trace: neighbouring uses and waits are shown joined below ${below}, and counts as their largest and ` +
      "their mean. Numbers and sums are exact, percentiles are those of the means of joined ones. Failures, what " +
      "happened to the pool, and the longest of forty are shown one by one; `cenote draw --from --to` shows a " +
      "part of the trace whole.",
  );
}

function overview() {
  const explain = link("what happened, explained (e)", () => element("explained").showModal());
  if (!hasPool) {
    tell("Overview", node("p", explain), changesOf(first, last, 30));
    return;
  }
  tell(
    "Overview",
    node("p", explain),
    joined(),
    servers.length ? changesOf(first, last, 10) : "",
    percentileTable(0, Math.ceil(last)),
    longestWaits(0, Math.ceil(last)),
    marksOf(HELD, "held for long", 0, last),
    marksOf(CLEAR, "clears", 0, last),
    listed(
      `injected faults: ${faults.length}`,
      faults.map((_, i) => linkTo(faultItem(i))),
      30,
    ),
    heldByPlace(first, last),
    longestUses(0, Math.ceil(last)),
  );
}
function aboutRange() {
  const { from, to } = range;
  tell(
    `${span(to - from)} from ${both(from)}`,
    node(
      "p",
      link("zoom to it (Enter)", zoomToRange),
      " ",
      link("forget it (Esc)", () => clearSelection()),
    ),
    ...statistics(from, to),
  );
}
function zoomToRange() {
  if (range) show(range.from, range.to);
}
function chooseRange(from, to) {
  range = { from: Math.max(first, Math.min(from, to)), to: Math.min(last, Math.max(from, to)) };
  selected = null;
  aboutRange();
  redraw();
}
function clearSelection() {
  selected = range = null;
  status();
  if (isWide()) overview();
  else hidePanel();
  redraw();
}
const isWide = () => document.documentElement.clientWidth >= 900;
function hidePanel() {
  panel.hidden = true;
  resize();
}
function togglePanel() {
  if (!panel.hidden) hidePanel();
  else if (selected) pin();
  else if (range) aboutRange();
  else overview();
}
