// ---- Links to a moment, and the trace beside this one.

const isFramed = window.parent !== window;
const isBeside = isFramed && window.name.startsWith("cenote-");
const isStacked = isFramed && window.name.startsWith("cenote-stacked-");

/// What #at=12.5&span=0.2&find=w17&axis=seconds&theme=dark asks for.
function follow(hash) {
  const wanted = new URLSearchParams(hash.replace(/^#/, ""));
  if (wanted.has("axis")) setAxis(wanted.get("axis") !== "seconds");
  if (wanted.get("theme")) theme(wanted.get("theme") === "dark");
  if (wanted.has("find")) find(wanted.get("find"));
  if (!wanted.has("at")) return;
  const at = parseTime(wanted.get("at"));
  if (at === null) {
    status(`“${wanted.get("at")}” is no time of this trace`);
    return;
  }
  const isSinceStart = isBeside && !wanted.get("at").includes(":");
  const middle = isSinceStart ? first + at / tick : ticksOf(at);
  const length = wanted.has("span") ? Number(wanted.get("span")) / tick : (last - first) / 20;
  if (!wanted.has("find")) select(timeItem(Math.min(last, Math.max(first, middle))));
  show(middle - length / 2, middle + length / 2);
}
/// The moment that is in view, and what is pinned. Of two traces, the time is since the start of each.
function hashOfView() {
  const middle = (view.from + view.to) / 2;
  const at = isBeside ? (middle - first) * tick : seconds(middle);
  const parts = [`at=${at.toFixed(6)}`, `span=${((view.to - view.from) * tick).toPrecision(4)}`];
  const named = {
    wait: () => `w${data.waitId[selected.index]}`,
    life: () => `c${data.lifeNumber[selected.index]}`,
    use: () =>
      data.useHolder[selected.index]
        ? `w${data.useHolder[selected.index]}`
        : `c${data.useNumber[selected.index]}`,
  };
  if (selected && named[selected.kind] && !isBeside) parts.push(`find=${named[selected.kind]()}`);
  return `#${parts.join("&")}`;
}
let ownHash = "";
async function copyLink() {
  const hash = hashOfView();
  if (isBeside) {
    window.parent.postMessage({ cenote: "link", hash }, "*");
    return;
  }
  ownHash = location.hash = hash;
  status((await copied(location.href)) ? "the link is copied" : "the link is in the address bar");
}
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
window.addEventListener("hashchange", () => {
  if (location.hash !== ownHash) follow(location.hash);
});

/// Times since the start of the trace, in seconds.
function tellBeside() {
  if (isBeside)
    window.parent.postMessage(
      { cenote: "view", from: (view.from - first) * tick, to: (view.to - first) * tick },
      "*",
    );
}
window.addEventListener("message", ({ data: told, source }) => {
  if (!isBeside || source !== window.parent) return;
  if (told.cenote === "view") show(first + told.from / tick, first + told.to / tick, true);
  if (told.cenote === "hash") follow(told.hash);
  if (told.cenote === "status") status(told.text);
});
