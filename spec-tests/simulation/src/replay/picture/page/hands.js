// ---- Hands and keys.

main.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = main.getBoundingClientRect();
  const overLanes = event.clientY - box.top >= layout().lanes;
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
  else if (event.ctrlKey || event.metaKey || !overLanes) {
    zoom(Math.exp(event.deltaY / 400), Math.max(LEFT, event.clientX - box.left));
  } else scroll(event.deltaY);
}, { passive: false });
let drag = null;
main.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  main.focus();
  const box = main.getBoundingClientRect(), px = event.clientX - box.left;
  drag = { x: event.clientX, y: event.clientY };
  if (event.shiftKey) marked = { a: px, b: px };
  main.setPointerCapture(event.pointerId);
  main.classList.add("dragging");
});
main.addEventListener("pointermove", (event) => {
  const box = main.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  if (!drag) return hover(px, py);
  tip.hidden = true;
  if (marked) { marked.b = px; return redraw(); }
  pan((drag.x - event.clientX) / (width - LEFT - RIGHT));
  scroll(drag.y - event.clientY);
  drag = { x: event.clientX, y: event.clientY };
});
main.addEventListener("pointerup", () => {
  if (marked && Math.abs(marked.a - marked.b) > 3) {
    show(time(Math.min(marked.a, marked.b)), time(Math.max(marked.a, marked.b)));
  }
  marked = drag = null;
  main.classList.remove("dragging");
  redraw();
});
main.addEventListener("pointerleave", () => { tip.hidden = true; });
main.addEventListener("dblclick", (event) => zoom(0.4, event.clientX - main.getBoundingClientRect().left));
const KEYS = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), a: () => pan(-0.5), d: () => pan(0.5),
  ArrowUp: () => scroll(-3 * view.lane), ArrowDown: () => scroll(3 * view.lane),
  PageUp: () => scroll(-height / 2), PageDown: () => scroll(height / 2),
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(first, last),
  Home: () => show(first, first + view.to - view.from), End: () => show(last - view.to + view.from, last),
  "[": () => laneHeight(0.7), "]": () => laneHeight(1.5), n: () => failure(true), p: () => failure(false),
  "/": () => element("query").focus(), t: () => theme(), "?": () => element("help").showModal(),
  Escape: () => { found = null; status(); redraw(); },
};
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (element("help").open) return;
  const action = KEYS[event.key];
  if (action) { event.preventDefault(); action(); }
});
element("find").addEventListener("submit", (event) => { event.preventDefault(); find(element("query").value); });
element("failure").addEventListener("click", () => failure(true));
element("in").addEventListener("click", () => zoom(0.5));
element("out").addEventListener("click", () => zoom(2));
element("all").addEventListener("click", () => show(first, last));
element("keys").addEventListener("click", () => element("help").showModal());
element("theme").addEventListener("click", () => theme());
function theme(dark = !document.documentElement.classList.contains("dark")) {
  document.documentElement.classList.toggle("dark", dark);
  readColours();
  redraw();
}

// ---- Beginning.

/// Few lanes fill the page, and many are as small as can still be told apart.
function fitLanes() {
  view.lane = Math.min(32, Math.max(lanes > 400 ? 4 : 8, Math.floor((main.clientHeight - layout().lanes) / lanes)));
}
/// Of outcomes that are failures.
const WHY = { 1: "timed out", 2: "met a cleared or paused pool", 3: "got no connection established", 4: "met a closed pool" };
/// What somebody wants to know first.
function verdict() {
  const counts = new Array(OUTCOMES.length).fill(0);
  let longest = 0;
  for (let i = 0; i < data.waitOutcome.length; i++) {
    counts[data.waitOutcome[i]]++;
    longest = Math.max(longest, data.waitLength[i]);
  }
  const failed = counts.map((count, outcome) => [count, WHY[outcome]]).filter(([count, why]) => count > 0 && why);
  const total = failed.reduce((sum, [count]) => sum + count, 0);
  const plural = (count, what) => `${many(count)} ${what}${count === 1 ? "" : "s"}`;
  const queue = series[3].max === 0 ? "Nobody waited."
    : `At most ${plural(series[3].max, "request")} waited at once, for ${span(longest)} at the longest.`;
  if (total === 0) return `No check-out failed. ${queue}`;
  const reasons = failed.map(([count, why]) => `${many(count)} ${why}`).join(", ");
  const at = data.markAt[data.markKind.indexOf(3)];
  const first = at === undefined ? "" : `; the first at ${shown(seconds(at), 1e-3)}`;
  return `${plural(total, "check-out")} failed: ${reasons}${first}. ${queue}`;
}

const origin = about.origin ? `, recorded ${new Date(about.origin + begin * 1000).toISOString()}` : "";
element("title").textContent = `Pool of ${about.address ?? "an address that is not told"}`;
document.title = element("title").textContent;
element("subtitle").textContent = `${many(about.steps)} steps, ${many(lanes)} slots` +
  (about.program ? `, by ${about.program}` : "") + origin + (about.isNew ? "" : ", from a state");
const drains = data.useKind.includes(2) ? [["--draining", "draining a late reply"]] : [];
for (const [colour, text] of [["--idle", "idle"], ["--used", "in use"], ["--pending", "being established"], ...drains,
  ["--waiting", "waiting"], ["--served", "wait, served"], ["--failed", "failed, or a clear"],
  ["--ready", "ready"], ["--limit", "dashed: limits"]]) {
  const item = document.createElement("li"), box = document.createElement("i");
  box.style.background = `var(${colour})`;
  item.append(box, text);
  element("legend").append(item);
}
element("subtitle").title = element("subtitle").textContent;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
prefersDark.addEventListener("change", (event) => theme(event.matches));
element("verdict").textContent = verdict();
theme(prefersDark.matches);
fitLanes();
resize();
new ResizeObserver(resize).observe(main);
status();
const wanted = new URLSearchParams(location.hash.slice(1));
if (wanted.has("find")) find(wanted.get("find"));
if (wanted.get("theme")) theme(wanted.get("theme") === "dark");
document.documentElement.dataset.ready = "true";
