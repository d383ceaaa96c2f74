// ---- Keys and buttons.

const dialogs = ["help", "explained"].map(element);
const KEYS = {
  ArrowLeft: () => pan(-0.2),
  ArrowRight: () => pan(0.2),
  a: () => pan(-0.5),
  d: () => pan(0.5),
  ArrowUp: () => scroll(-3 * view.lane),
  ArrowDown: () => scroll(3 * view.lane),
  PageUp: () => scroll(-height / 2),
  PageDown: () => scroll(height / 2),
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => show(first, last),
  Home: () => show(first, first + view.to - view.from),
  End: () => show(last - view.to + view.from, last),
  "[": () => laneHeight(0.7),
  "]": () => laneHeight(1.5),
  n: () => walk(true),
  N: () => walk(false),
  p: () => walk(false),
  s: () => chooseRange(view.from, view.to),
  Enter: zoomToRange,
  z: () => {
    if (selected) select(selected, "closely");
  },
  c: () => setAxis(!wall),
  l: copyLink,
  i: togglePanel,
  e: () => element("explained").showModal(),
  "/": () => {
    element("query").focus();
    element("query").select();
  },
  t: () => theme(),
  "?": () => element("help").showModal(),
  Escape: () => clearSelection(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialogs.some((dialog) => dialog.open)) return;
  if (event.target.tagName === "INPUT") {
    if (event.key === "Escape") {
      event.preventDefault();
      main.focus();
    }
    return;
  }
  // A button that has the focus is pressed by Enter.
  if (event.key === "Enter" && event.target.tagName === "BUTTON") return;
  const action = KEYS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});
element("find").addEventListener("submit", (event) => {
  event.preventDefault();
  find(element("query").value);
  main.focus();
});
for (const [id, key] of [
  ["failure", "n"],
  ["in", "+"],
  ["out", "-"],
  ["all", "0"],
  ["keys", "?"],
  ["theme", "t"],
  ["axis", "c"],
  ["link", "l"],
  ["info", "i"],
  ["part", "s"],
  ["close", "i"],
]) {
  element(id).addEventListener("click", () => KEYS[key]());
}
function theme(dark = !document.documentElement.classList.contains("dark")) {
  document.documentElement.classList.toggle("dark", dark);
  readColours();
  paintLegend();
  redraw();
}
function setAxis(toWall) {
  wall = toWall && hasClock;
  if (toWall && !hasClock) {
    status("the trace does not say when it was recorded");
    return;
  }
  status();
  redraw();
}
