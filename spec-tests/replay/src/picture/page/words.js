// ---- What lies at a place, and a few words about it.

const waitItem = (i) => ({
  kind: "wait",
  index: i,
  from: startOf(waits, i),
  to: data.waitEnd[i],
  row: data.waitRow[i],
});
const useItem = (i) => ({
  kind: "use",
  index: i,
  from: startOf(uses, i),
  to: data.useEnd[i],
  lane: data.useSlot[i],
});
const lifeItem = (i) => ({
  kind: "life",
  index: i,
  from: startOf(lives, i),
  to: data.lifeEnd[i],
  lane: data.lifeSlot[i],
});
const markItem = (i) => ({ kind: "mark", index: i, from: data.markAt[i], to: data.markAt[i] });
const faultItem = (i) => ({ kind: "fault", index: i, from: faults[i].from, to: faults[i].to });
const timeItem = (at) => ({ kind: "time", index: 0, from: at, to: at });
const isSame = (a, b) => a && b && a.kind === b.kind && a.index === b.index && a.from === b.from;

/// What is at these pixels; `reach` pixels beside it count, too. Null if that is nothing.
function itemAt(px, py, reach = 1) {
  const { marks, servers: serversTop, counts, waiting, lanes: lanesTop } = layout();
  const at = time(px);
  const near = time(px + reach) - at;
  if (px < LEFT || px > width - RIGHT) return null;
  if (py >= serversTop && py < serversTop + serversHeight()) {
    const i = roleAt(Math.floor((py - serversTop) / serverLane()), at, near);
    return i < 0 ? null : roleItem(i);
  }
  if (!hasPool) return null;
  if (py >= marks && py < serversTop) return markAt(at, 5 * near) ?? faultAt(at, near);
  if (py >= waiting && py < waiting + waitsHeight()) {
    const rowHeight = waitsHeight() / waits.count;
    const row = Math.floor((py - waiting) / rowHeight);
    // Rows may be thinner than a finger.
    for (let away = 0; away * rowHeight <= 3 * reach; away++) {
      for (const candidate of [row - away, row + away]) {
        const i = intervalAt(waits, candidate, at, near);
        if (i >= 0) return waitItem(i);
      }
    }
  }
  if (py < lanesTop) return null;
  const lane = Math.floor((py - lanesTop + view.top) / view.lane);
  const use = intervalAt(uses, lane, at, near);
  const life = intervalAt(lives, lane, at, near);
  return use >= 0 ? useItem(use) : life >= 0 ? lifeItem(life) : null;
}
/// The worst mark of these kinds near a time.
function markAt(at, near, isWanted = () => true) {
  const worst = (i) => LAYERS.findIndex((kinds) => kinds.includes(data.markKind[i]));
  let best = -1;
  for (
    let i = lowerBound(data.markAt, at - near);
    i < data.markAt.length && data.markAt[i] <= at + near;
    i++
  ) {
    if (isWanted(data.markKind[i]) && (best < 0 || worst(i) > worst(best))) best = i;
  }
  return best < 0 ? null : markItem(best);
}
function faultAt(at, near) {
  const i = faults.findIndex((fault) => fault.from - near <= at && at <= fault.to + near);
  return i < 0 ? null : faultItem(i);
}

/// Where a request was called, if the trace says so.
const placed = (text) => (text === 0 ? "" : ` at ${texts[text]}`);
const holderName = (holder) => (holder ? `w${holder}` : "an unknown request");
/// An item in one line.
function title({ kind, index: i, from }) {
  switch (kind) {
    case "wait": {
      if (waits.size(i) > 1)
        return `${plural(waits.size(i), "request")} waited ${span(waits.mean(i))} on average, each served`;
      const got = data.waitConnection[i] ? ` with c${data.waitConnection[i]}` : "";
      return `w${data.waitId[i]} waited ${span(data.waitLength[i])}: ${OUTCOMES[data.waitOutcome[i]]}${got}`;
    }
    case "use": {
      if (uses.size(i) > 1)
        return `c${data.useNumber[i]} in use ${plural(uses.size(i), "time")}, for ${span(uses.mean(i))} on average`;
      const doing = [
        "being established",
        `in use by ${holderName(data.useHolder[i])}`,
        "draining a late reply",
      ];
      return `c${data.useNumber[i]} ${doing[data.useKind[i]]} for ${span(data.useLength[i])}`;
    }
    case "life":
      return `connection c${data.lifeNumber[i]}, for ${span(data.lifeLength[i])}`;
    case "mark": {
      const about = data.markAbout[i];
      const kind = data.markKind[i];
      const name =
        about === 0 || kind === CLEAR ? "" : isOfRequest(kind) ? `w${about}: ` : `c${about}: `;
      return name + texts[data.markText[i]];
    }
    case "role":
      return roleTitle(i);
    case "fault":
      return `injected: ${faults[i].name}, for ${span(faults[i].to - faults[i].from)}`;
    default:
      return both(from);
  }
}
/// What a wait was for.
const whyWaited = (i) => texts[data.waitWhy[i]];

/// What the pointer is over, in a few lines.
function describe(px, py) {
  const item = itemAt(px, py);
  const at = time(px);
  const when = shown(seconds(at), ((view.to - view.from) * tick) / width);
  if (item?.kind === "role") return describeRole(item.index);
  if (item) {
    const lines = [
      title(item),
      item.kind === "mark" || item.kind === "time" ? both(item.from) : `from ${both(item.from)}`,
    ];
    if (item.kind === "wait") lines.push(`in the way: ${whyWaited(item.index)}`);
    if (item.kind === "use" && notes.has(item.index)) lines.push(notes.get(item.index));
    if (item.kind === "life" && data.lifeWhy[item.index])
      lines.push(`closed: ${texts[data.lifeWhy[item.index]]}`);
    return lines.join("\n");
  }
  const { counts, holds, lanes: lanesTop } = layout();
  if (!hasPool) return when;
  if (py >= counts && py < holds) {
    const i = pointAt(at);
    const limit = limitAt(at);
    const [total, used, pending] = [data.pointTotal[i], data.pointInUse[i], data.pointPending[i]];
    return (
      `${when}\n${many(total)} of ${limit.max ? many(limit.max) : "any number of"} connections (at least ${limit.min}):\n` +
      `${many(used)} in use, ${many(total - used - pending)} idle, ${pending} of ${limit.connecting} being established\n` +
      `${plural(data.pointWaiting[i], "request waits", "requests wait")}`
    );
  }
  if (py >= lanesTop) {
    const lane = Math.floor((py - lanesTop + view.top) / view.lane);
    return lane < lanes ? `${when}\nslot ${lane}: no connection` : null;
  }
  return when;
}
function hover(px, py) {
  const text = px < LEFT ? null : describe(px, py);
  tip.hidden = text === null;
  if (text === null) return;
  tip.textContent = text;
  const right = px + 16 + tip.offsetWidth > width;
  const below = py + 16 + tip.offsetHeight > height;
  tip.style.left = `${Math.max(0, right ? px - tip.offsetWidth - 10 : px + 16)}px`;
  tip.style.top = `${Math.max(0, below ? py - tip.offsetHeight - 10 : py + 16)}px`;
}
