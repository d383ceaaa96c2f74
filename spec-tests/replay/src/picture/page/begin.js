// ---- Beginning.

/// Of outcomes that are failures.
const WHY = {
  1: "timed out",
  2: "met a cleared or paused pool",
  3: "got no connection established",
  4: "met a closed pool",
  7: "met a full wait queue",
  8: "were shed",
};
/// What requests waited for the longest, together; of those that did not fail for another reason.
function mostlyInTheWay() {
  const sums = new Map();
  for (let i = 0; i < data.waitWhy.length; i++) {
    if (![SERVED, TIMED_OUT, CANCELLED, WAITING, SHED].includes(data.waitOutcome[i])) continue;
    const way = texts[data.waitWhy[i]].split(":")[0];
    sums.set(way, (sums.get(way) ?? 0) + waits.size(i) * waits.mean(i));
  }
  return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0];
}
/// The first things to know, with links to where they happened.
function verdict() {
  const counts = new Array(OUTCOMES.length).fill(0);
  data.waitOutcome.forEach((outcome, i) => (counts[outcome] += waits.size(i)));
  const failed = counts
    .map((count, outcome) => [count, WHY[outcome]])
    .filter(([count, why]) => count > 0 && why);
  const total = failed.reduce((sum, [count]) => sum + count, 0);
  const said = [about.servers?.verdict ?? ""];
  if (!hasPool) return said;
  if (total === 0) said.push("No check-out failed. ");
  else {
    const i = data.markKind.findIndex(isOfRequest);
    said.push(
      `${plural(total, "check-out")} failed: ${failed.map(([count, why]) => `${many(count)} ${why}`).join(", ")}`,
    );
    said.push(
      ...(i < 0 ? [] : ["; the first at ", linkTo(markItem(i), shown(seconds(data.markAt[i]), 1e-3))]),
      ". ",
    );
  }
  const [slowest] = longest(waits, hasWaited, 0, last, 1);
  if (slowest === undefined) return [...said, "No request waited. "];
  said.push(
    `At most ${plural(waiting.max, "request")} waited at once, `,
    linkTo(waitItem(slowest), `for ${span(waits.mean(slowest))} at the longest`),
  );
  const way = mostlyInTheWay();
  said.push(way ? `; mostly in the way: ${way}. ` : ". ");
  let leaks = 0;
  data.markText.forEach((text, i) => {
    if (data.markKind[i] === HELD && texts[text].startsWith("looks leaked")) leaks++;
  });
  const leak = data.markText.findIndex(
    (text, i) => data.markKind[i] === HELD && texts[text].startsWith("looks leaked"),
  );
  if (leaks > 0)
    said.push(linkTo(markItem(leak), `${plural(leaks, "connection looks", "connections look")} leaked`), ".");
  return said;
}

function paintLegend() {
  const kinds = new Set(data.markKind);
  const useKinds = new Set(data.useKind);
  const list = element("legend");
  const box = (colour) => {
    const made = document.createElement("i");
    made.style.background = colours[colour];
    return made;
  };
  const item = (...parts) => {
    const made = document.createElement("li");
    made.append(...parts);
    return made;
  };
  list.replaceChildren();
  const present = new Set(roleSpans.map((one) => one.role));
  for (const role of present) list.append(item(box(role.colour), role.name));
  if (roleSpans.some((one) => one.elected)) list.append(item("◆ elected"));
  if (roleSpans.some((one) => one.removed)) list.append(item("✕ removed"));
  if (!hasPool) return;
  list.append(item(box("--idle"), "idle"));
  const limits = shadeLimits.length
    ? ["≤ " + span(shadeLimits[0]), "≤ " + span(shadeLimits[1]), "≤ " + span(shadeLimits[2]), "longer"]
    : [];
  list.append(item(box("--used"), "in use ", ...limits.flatMap((text, i) => [box(SHADES[i]), text, " "])));
  if (useKinds.has(PENDING)) list.append(item(box("--pending"), "being established"));
  if (useKinds.has(2)) list.append(item(box("--draining"), "draining a late reply"));
  list.append(
    item(box("--waiting"), "waiting"),
    item(box("--served"), "wait, served"),
    item(box("--failed"), "wait, failed"),
  );
  KINDS.forEach((kind, number) => {
    if (!kinds.has(number)) return;
    const shape = document.createElement("canvas");
    [shape.width, shape.height, shape.className] = [14, 14, "shape"];
    drawMark(shape.getContext("2d"), number, 7, 7);
    const button = link(kind.name, () => walk(true, (one) => one === number, false));
    button.title = "the next one";
    list.append(item(shape, button));
  });
  if (faults.length) list.append(item(box("--fault"), "hatched: injected faults"));
  list.append(item("filled: mean, line: maximum, dashed: limits"));
}

element("title").textContent = hasPool
  ? `Pool of ${about.address ?? "an unknown address"}`
  : `Servers of a client: ${plural(servers.length, "server")}`;
document.title = element("title").textContent;
const recorded = hasClock ? `, recorded ${new Date(about.origin + begin * 1000).toISOString()}` : "";
element("subtitle").textContent =
  `${plural(about.steps, "step")}` +
  (hasPool ? `, ${plural(lanes, "slot")}` : "") +
  (about.program ? `, by ${about.program}` : "") +
  recorded +
  (about.isNew ? "" : ", from a state");
element("axis").hidden = !hasClock;
document.documentElement.classList.toggle("beside", isBeside);
document.documentElement.classList.toggle("stacked", isStacked);
element("summary").append(...linked([about.servers?.summary, about.summary].filter(Boolean).join("\n")));
element("summary").addEventListener("click", (event) => {
  if (event.target.tagName === "BUTTON") element("explained").close();
});
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
prefersDark.addEventListener("change", (event) => theme(event.matches));
theme(prefersDark.matches);
element("verdict").append(...verdict());
resize();
fitLanes();
if (isWide()) overview();
new ResizeObserver(resize).observe(main);
status();
follow(location.hash);
document.documentElement.dataset.ready = "true";
if (isBeside) window.parent.postMessage({ cenote: "ready" }, "*");
