// ---- Mouse and fingers.

const place = (event) => {
  const box = main.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
/// The buttons and fingers that are down, by their id: where each is.
const down = new Map();
/// Where the first went down, whether it has moved, and whether it chooses a range.
let gesture = null;
const STILL = 5;

main.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const [px, py] = place(event);
    const overLanes = py >= layout().lanes;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / width);
    else if (event.ctrlKey || event.metaKey || !overLanes)
      zoom(Math.exp(event.deltaY / 400), Math.max(LEFT, px));
    else scroll(event.deltaY);
  },
  { passive: false },
);

main.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  main.focus({ preventScroll: true });
  const [px, py] = place(event);
  down.set(event.pointerId, [px, py]);
  main.setPointerCapture(event.pointerId);
  gesture =
    down.size === 1
      ? { px, py, moved: false, marks: event.shiftKey }
      : { ...gesture, moved: true, marks: false };
  main.classList.add("dragging");
});
main.addEventListener("pointermove", (event) => {
  const [px, py] = place(event);
  const before = down.get(event.pointerId);
  if (!before) {
    if (event.pointerType === "mouse") hover(px, py);
    return;
  }
  tip.hidden = true;
  if (!gesture.moved && Math.hypot(px - gesture.px, py - gesture.py) < STILL) return;
  if (down.size === 2) pinch(event.pointerId, px, py);
  else if (gesture.marks) {
    range = { from: time(Math.min(gesture.px, px)), to: time(Math.max(gesture.px, px)) };
    redraw();
  } else {
    // The way to where the drag began counts, too.
    pan((before[0] - px) / (width - LEFT - RIGHT));
    scroll(before[1] - py);
  }
  gesture.moved = true;
  down.set(event.pointerId, [px, py]);
});
/// Two fingers: what is under each stays under it.
function pinch(id, px, py) {
  const [other] = [...down].filter(([key]) => key !== id).map(([, at]) => at);
  const before = down.get(id);
  const [was, is] = [Math.abs(before[0] - other[0]), Math.abs(px - other[0])];
  if (Math.min(was, is) > 10) zoom(was / is, other[0]);
  else pan((before[0] - px) / 2 / (width - LEFT - RIGHT));
  scroll((before[1] - py) / 2);
}
function release(event) {
  if (!down.delete(event.pointerId)) return;
  main.classList.remove("dragging");
  if (down.size > 0 || event.type === "pointercancel") return;
  if (!gesture.moved) tap(event);
  else if (gesture.marks) chooseRange(range.from, range.to);
  redraw();
}
main.addEventListener("pointerup", release);
main.addEventListener("pointercancel", release);
/// Pins what is there; where nothing is, what happened at that time.
function tap(event) {
  const [px, py] = place(event);
  const item = itemAt(px, py, event.pointerType === "touch" ? 6 : 1);
  tip.hidden = true;
  if (item) select(item);
  else if (px >= LEFT && px <= width - RIGHT) select(timeItem(time(px)));
}
main.addEventListener("pointerleave", () => {
  tip.hidden = true;
});
main.addEventListener("dblclick", (event) => zoom(0.4, place(event)[0]));
