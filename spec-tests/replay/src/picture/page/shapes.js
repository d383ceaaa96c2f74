// ---- Colours, and the shapes of marks: no two kinds differ in colour only.

const NAMES = [
  "--ground",
  "--panel",
  "--ink",
  "--faint",
  "--line",
  "--idle",
  "--used",
  "--use1",
  "--use2",
  "--use3",
  "--use4",
  "--pending",
  "--draining",
  "--waiting",
  "--served",
  "--failed",
  "--ready",
  "--leak",
  "--fault",
  "--other",
  "--found",
  "--primary",
  "--secondary",
];
const SHADES = ["--use1", "--use2", "--use3", "--use4"];
const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of NAMES) colours[name] = style.getPropertyValue(name).trim();
}
/// How bright a colour is for an eye, from 0 to 1, as WCAG defines it.
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5]
    .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
/// The colour of text on this ground: black or white, whichever differs more.
const textOn = (ground) => (luminance(ground) > 0.179 ? "#000000" : "#ffffff");

const lines = (ink, width, ...points) => {
  ink.lineWidth = width;
  ink.beginPath();
  for (const [from, to] of points) {
    ink.moveTo(...from);
    ink.lineTo(...to);
  }
  ink.stroke();
};
const polygon = (ink, ...points) => {
  ink.beginPath();
  points.forEach(([left, top], i) => (i === 0 ? ink.moveTo(left, top) : ink.lineTo(left, top)));
  ink.closePath();
  ink.fill();
};
const ring = (ink, px, py, radius, width) => {
  ink.lineWidth = width;
  ink.beginPath();
  ink.arc(px, py, radius, 0, 2 * Math.PI);
  ink.stroke();
};
/// By the number of a mark's kind. `walked`: `n` stops there. `line`: through the whole picture.
const KINDS = [
  {
    name: "ready",
    colour: "--ready",
    line: true,
    draw: (ink, a, b) => polygon(ink, [a - 5, b + 5], [a + 5, b + 5], [a, b - 5]),
  },
  {
    name: "clear",
    colour: "--failed",
    line: true,
    walked: true,
    draw: (ink, a, b) => polygon(ink, [a - 6, b - 5], [a + 6, b - 5], [a, b + 6]),
  },
  { name: "closed", colour: "--ink", line: true, draw: (ink, a, b) => ink.fillRect(a - 4, b - 4, 8, 8) },
  {
    name: "check-out failed",
    colour: "--failed",
    walked: true,
    draw: (ink, a, b) => ink.fillRect(a - 0.75, b - 4, 1.5, 9),
  },
  {
    name: "not established",
    colour: "--failed",
    walked: true,
    draw: (ink, a, b) => polygon(ink, [a - 5, b], [a, b - 5], [a + 5, b], [a, b + 5]),
  },
  {
    name: "connection lost",
    colour: "--failed",
    walked: true,
    draw: (ink, a, b) =>
      lines(
        ink,
        2,
        [
          [a - 4, b - 4],
          [a + 4, b + 4],
        ],
        [
          [a - 4, b + 4],
          [a + 4, b - 4],
        ],
      ),
  },
  {
    name: "held for long",
    colour: "--leak",
    line: true,
    walked: true,
    draw: (ink, a, b) => ring(ink, a, b, 4, 2.5),
  },
  {
    name: "back-off",
    colour: "--fault",
    walked: true,
    // Around the failure that it follows.
    draw: (ink, a, b) => {
      ink.fillRect(a - 7, b - 5, 2, 11);
      ink.fillRect(a + 5, b - 5, 2, 11);
    },
  },
  {
    name: "shed",
    colour: "--failed",
    walked: true,
    draw: (ink, a, b) => {
      ink.fillRect(a - 4, b - 4, 8, 2);
      ink.fillRect(a - 0.75, b - 4, 1.5, 9);
    },
  },
  {
    name: "connections retired",
    colour: "--other",
    line: true,
    draw: (ink, a, b) => {
      ink.lineWidth = 2;
      ink.strokeRect(a - 4, b - 4, 8, 8);
    },
  },
  {
    name: "other",
    colour: "--other",
    line: true,
    draw: (ink, a, b) =>
      lines(ink, 2, [
        [a - 4, b],
        [a + 4, b],
      ]),
  },
];
const [READY, CLEAR, CLOSED, CHECK_OUT_FAILED, NOT_ESTABLISHED, LOST, HELD, BACK_OFF, SHEDDING, RETIRED, OTHER] =
  KINDS.keys();
const isOfRequest = (kind) => kind === CHECK_OUT_FAILED || kind === SHEDDING;
const faults = about.faults.map(({ at, lasted, name, text }) => {
  const from = ticksOf(at);
  return { from, to: from + lasted / tick, name, text };
});
function drawMark(ink, kind, left, middle) {
  ink.fillStyle = ink.strokeStyle = colours[KINDS[kind].colour];
  KINDS[kind].draw(ink, left, middle);
}

/// By outcome.
const waitColour = (outcome) =>
  outcome === SERVED ? "--served" : outcome === CANCELLED || outcome === WAITING ? "--other" : "--failed";
const USE_COLOURS = ["--pending", "--used", "--draining"];
