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
      const doing = ["being established", `in use${holder}`, "draining a late reply"][data.useKind[use]];
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
