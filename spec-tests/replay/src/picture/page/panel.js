// ---- The panel: all about the pinned item.

const panel = element("panel");
const story = element("story");

function node(tag, ...children) {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
}
function link(text, action) {
  const made = node("button", text);
  made.className = "link";
  made.addEventListener("click", action);
  return made;
}
const linkTo = (item, text = title(item)) => link(text, () => select(item, "near"));
/// A text in which w17 and c3 lead to that request and that connection.
function linked(text) {
  const parts = text.split(/\b([wc]\d+)\b/);
  return parts.map((part, i) => (i % 2 === 1 && locate(part, null) ? link(part, () => find(part)) : part));
}
function facts(...pairs) {
  const list = node("dl");
  for (const [name, ...value] of pairs.filter(Boolean)) {
    list.append(node("dt", name), node("dd", ...value.flat()));
  }
  return list;
}
/// What `--clear` prints: names in the first columns, and texts of one or more lines.
function printed(text) {
  const rows = [];
  for (const line of text.trimEnd().split("\n")) {
    const name = line.slice(0, 14).trim();
    const rest = line.slice(14).trim();
    if (name) rows.push([name, rest]);
    else rows.at(-1)[1] += ` ${rest}`;
  }
  return rows.map(([name, text]) => [name, ...linked(text)]);
}
/// A list with a title, of at most `most` items.
function listed(name, items, most = 10) {
  if (items.length === 0) return "";
  const list = node("ul");
  for (const item of items.slice(0, most)) list.append(node("li", ...[item].flat()));
  if (items.length > most) list.append(node("li", `and ${many(items.length - most)} more`));
  return node("section", node("h3", name), list);
}
const command = (text) => node("section", node("h3", "on the command line"), node("code", text));

/// Shows these nodes, with a heading.
function tell(heading, ...nodes) {
  story.replaceChildren(node("h2", heading), ...nodes.filter((one) => one !== ""));
  story.scrollTop = 0;
  panel.hidden = false;
  resize();
}

function pin() {
  const { kind, index } = selected;
  const nodes = {
    wait: aboutWait,
    use: aboutUse,
    life: aboutLife,
    mark: aboutMark,
    fault: aboutFault,
    time: aboutTime,
    role: aboutRole,
  }[kind](index);
  tell(title(selected), ...nodes);
}

const useOf = (request) => (request === 0 ? -1 : data.useHolder.indexOf(request));
const waitOf = (request) => (request === 0 ? -1 : data.waitId.indexOf(request));
const lifeOf = (connection) => data.lifeNumber.indexOf(connection);
/// The uses of connections at a time, those that end last first.
function inUseAt(at) {
  const found = [];
  for (let lane = 0; lane < uses.count; lane++) {
    const i = intervalAt(uses, lane, at);
    if (i >= 0 && data.useKind[i] === IN_USE && startOf(uses, i) < at) found.push(i);
  }
  return found.sort((a, b) => data.useEnd[b] - data.useEnd[a]);
}
const marksAbout = (number, kinds) => {
  const found = [];
  data.markAbout.forEach((about, i) => {
    if (about === number && kinds.includes(data.markKind[i])) found.push(i);
  });
  return found.map((i) =>
    linkTo(markItem(i), `${shown(seconds(data.markAt[i]), 1e-3)} ${texts[data.markText[i]]}`),
  );
};

/// What is joined is not shown one by one.
function aboutJoined(set, i) {
  const times = facts(["from", both(startOf(set, i))], ["until", both(set.end[i])]);
  return [times, node("p", `${plural(set.size(i), "neighbour")} of a long trace, shown joined`)];
}

function aboutWait(i) {
  if (waits.size(i) > 1) return aboutJoined(waits, i);
  const from = startOf(waits, i);
  const to = data.waitEnd[i];
  const request = data.waitId[i];
  const ahead = data.waitAhead[i] === 0 ? "unknown" : plural(data.waitAhead[i] - 1, "request");
  const limitTicks = (data.waitLimit[i] * 1e-6) / tick;
  const limit = limitTicks === 0 ? null : ["its limit", span(limitTicks)];
  const use = useOf(request);
  const late = data.waitLength[i] - limitTicks;
  const isLate = limit && data.waitOutcome[i] === TIMED_OUT && late * tick > 2e-3;
  const held = inUseAt(from).map((use) => [
    linkTo(useItem(use), `c${data.useNumber[use]} by ${holderName(data.useHolder[use])}`),
    `${placed(data.usePlace[use])} for ${span(from - startOf(uses, use))} already, ` +
      (data.useEnd[use] >= Math.floor(traced)
        ? "not checked in by the end"
        : `checked in ${span(data.useEnd[use] - from)} later`),
  ]);
  return [
    facts(
      ["from", both(from)],
      ["until", both(to)],
      ["in the way", whyWaited(i)],
      data.waitPlace[i] !== 0 && ["called at", texts[data.waitPlace[i]]],
      ["ahead of it", ahead],
      limit,
      isLate && ["timed out", `${span(late)} after that`],
      use >= 0 && [
        "then it",
        linkTo(useItem(use), `held c${data.useNumber[use]} for ${span(uses.mean(use))}`),
      ],
    ),
    listed(`in use when it came: ${plural(held.length, "connection")}; the last to come back first`, held),
    command(`cenote explain FILE --waiter ${request}`),
  ];
}

function aboutUse(i) {
  if (uses.size(i) > 1) return aboutJoined(uses, i);
  const from = startOf(uses, i);
  const to = data.useEnd[i];
  const life = lifeOf(data.useNumber[i]);
  const wait = waitOf(data.useHolder[i]);
  const isUse = data.useKind[i] === IN_USE;
  let same = 0;
  let shorter = 0;
  for (let other = 0; other < data.useLength.length; other++) {
    if (data.useKind[other] !== data.useKind[i]) continue;
    same += uses.size(other);
    if (uses.mean(other) < data.useLength[i]) shorter += uses.size(other);
  }
  const share = Math.floor((shorter / same) * 1000) / 10;
  return [
    facts(
      ["from", both(from)],
      ["until", both(to)],
      data.usePlace[i] !== 0 && ["called at", texts[data.usePlace[i]]],
      isUse && ["ended", notes.has(i) ? linked(notes.get(i)) : "checked in, healthy"],
      ["took longer", `than ${share} % of ${isUse ? "all uses" : "its kind"}`],
      isUse && [
        "its wait",
        wait >= 0
          ? linkTo(waitItem(wait), `${span(waits.mean(wait))}: ${whyWaited(wait)}`)
          : data.useHolder[i]
            ? "none: served at once"
            : "unknown",
      ],
      life >= 0 && ["connection", linkTo(lifeItem(life))],
    ),
    isUse && data.useHolder[i] ? command(`cenote replay FILE --waiter ${data.useHolder[i]}`) : "",
  ];
}

function aboutLife(i) {
  const number = data.lifeNumber[i];
  const lane = data.lifeSlot[i];
  const mine = [];
  if (lane < uses.count) {
    for (let place = uses.starts[lane]; place < uses.starts[lane + 1]; place++) {
      if (data.useNumber[uses.order[place]] === number) mine.push(uses.order[place]);
    }
  }
  const used = mine.filter((use) => data.useKind[use] === IN_USE);
  const made = mine.find((use) => data.useKind[use] === PENDING);
  const times = used.reduce((sum, use) => sum + uses.size(use), 0);
  const busy = used.reduce((sum, use) => sum + uses.size(use) * uses.mean(use), 0);
  const byLength = [...used].sort((a, b) => uses.mean(b) - uses.mean(a));
  return [
    facts(
      ["from", both(startOf(lives, i))],
      ["until", both(data.lifeEnd[i])],
      ["closed", data.lifeWhy[i] ? linked(texts[data.lifeWhy[i]]) : "not in this trace"],
      made !== undefined && ["established", linkTo(useItem(made), `in ${span(data.useLength[made])}`)],
      [
        "in use",
        `${plural(times, "time")}, ${Math.round((busy / Math.max(1, data.lifeLength[i])) * 100)} % of its time`,
      ],
      ["slot", String(lane)],
    ),
    listed(
      "longest uses",
      byLength.map((use) =>
        linkTo(useItem(use), `${holderName(data.useHolder[use])} for ${span(uses.mean(use))}`),
      ),
      5,
    ),
    listed("what happened to it", marksAbout(number, [NOT_ESTABLISHED, LOST, HELD])),
    command(`cenote replay FILE --connection ${number}`),
  ];
}

/// The request or the connection that a mark is about.
function subject(i) {
  const kind = data.markKind[i];
  const number = data.markAbout[i];
  if (number === 0 || kind === CLEAR) return null;
  const index = isOfRequest(kind) ? waitOf(number) : lifeOf(number);
  return index < 0 ? null : isOfRequest(kind) ? waitItem(index) : lifeItem(index);
}
function aboutMark(i) {
  const kind = data.markKind[i];
  const at = data.markAt[i];
  const item = subject(i);
  const server = ownRoleAt(at);
  const clear = kind === CLEAR ? about.clears[data.markAbout[i] - 1] : undefined;
  const together = [];
  for (let other = lowerBound(data.markAt, at); data.markAt[other] === at; other++)
    if (other !== i) together.push(other);
  return [
    facts(
      ["what", KINDS[kind].name],
      ["at", both(at)],
      ["step", many(data.markStep[i])],
      item && ["about", linkTo(item)],
      [READY, CLEAR, CLOSED].includes(kind) && server && ["its server", linkTo(server)],
    ),
    clear === undefined ? "" : facts(...printed(clear)),
    listed(
      "at the same time",
      together.map((other) => linkTo(markItem(other))),
    ),
    command(
      kind === CLEAR
        ? `cenote explain FILE --clear ${data.markAbout[i]}`
        : `cenote replay FILE --until step=${data.markStep[i]}`,
    ),
  ];
}

function aboutFault(i) {
  const { from, to, text } = faults[i];
  return [
    facts(["from", both(from)], ["until", both(to)], ["came of it", text]),
    ...statistics(from, Math.max(to, from + 1)),
  ];
}

function aboutTime() {
  const at = selected.from;
  const point = pointAt(at);
  const counts = [
    ["connections", data.pointTotal],
    ["in use", data.pointInUse],
    ["being established", data.pointPending],
    ["waiting", data.pointWaiting],
  ];
  return [
    hasPool ? facts(...counts.map(([name, column]) => [name, many(column[point])])) : "",
    listed("servers then", rolesAt(at), 50),
    listed(
      "in use then, the last to come back first",
      inUseAt(at).map((use) => linkTo(useItem(use))),
    ),
  ];
}
