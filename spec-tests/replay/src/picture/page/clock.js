// ---- Times as text: seconds since the origin, or wall-clock times.

const DAY = 86400;
const hasClock = about.origin !== 0;
/// Seconds between midnight and the origin, in the zone that is shown; and the day of the origin.
const originOfDay = hasClock ? (((about.origin / 1000 + about.utcOffset * 60) % DAY) + DAY) % DAY : 0;
const originDay = Math.floor((about.origin / 1000 + about.utcOffset * 60) / DAY);
const zone =
  about.utcOffset === 0
    ? "UTC"
    : `${about.utcOffset < 0 ? "-" : "+"}${two(Math.abs(about.utcOffset) / 60)}:${two(Math.abs(about.utcOffset) % 60)}`;
/// Whether the axis has wall-clock times.
let wall = hasClock;

function two(number) {
  return String(Math.floor(number)).padStart(2, "0");
}
const many = (number) => number.toLocaleString("en");
const plural = (count, what, more = `${what}s`) => `${many(count)} ${count === 1 ? what : more}`;

/// A duration with three digits.
function span(ticks) {
  const value = ticks * tick;
  if (value === 0) return "0 s";
  if (value >= 0.9995) return three(value) + " s";
  if (value >= 0.9995e-3) return three(value * 1e3) + " ms";
  return three(value * 1e6) + " µs";
}
const three = (number) => number.toFixed(number < 9.995 ? 2 : number < 99.95 ? 1 : 0).replace(/\.0+$/, "");

/// As many decimals as the distance between two times needs.
const decimals = (step) => Math.max(0, Math.min(9, -Math.floor(Math.log10(step))));
const plain = (at, step) => at.toFixed(decimals(step)) + " s";
function clockTime(at, step) {
  const unit = 10 ** decimals(step);
  // Cut off as in logs; a thousandth makes up for fractions of two.
  const since = Math.floor((originOfDay + at) * unit + 1e-3) / unit;
  const day = Math.floor(since / DAY);
  const time = since - day * DAY;
  const rest = time % 60;
  const text = `${two(time / 3600)}:${two((time / 60) % 60)}:${two(rest)}`;
  const fraction = unit === 1 ? "" : (rest % 1).toFixed(decimals(step)).slice(1);
  const startDay = Math.floor((originOfDay + about.start / 1e9) / DAY);
  const date =
    day === startDay ? "" : new Date((originDay + day) * DAY * 1000).toISOString().slice(5, 10) + " ";
  return date + text + fraction;
}
/// A time as the axis has it.
const shown = (at, step) => (wall ? clockTime(at, step) : plain(at, step));
/// A time as logs have it, and as the trace has it.
const both = (ticks) => {
  const at = seconds(ticks);
  return hasClock ? `${clockTime(at, 1e-3)} (${plain(at, 1e-6)})` : plain(at, 1e-6);
};

/// Seconds since the origin of what was typed: 1.5s, 1.5, 03:07:12.5, 2026-01-01T03:07:12; or null.
function parseTime(text) {
  const number = /^(\d+(?:\.\d*)?|\.\d+)\s*s?$/i.exec(text);
  if (number) return Number(number[1]);
  const clock = /^(?:(\d{4}-\d\d-\d\d)[t ])?(\d\d?):(\d\d)(?::(\d\d(?:\.\d*)?))?z?$/i.exec(text);
  if (!clock || !hasClock) return null;
  const time = clock[2] * 3600 + clock[3] * 60 + Number(clock[4] ?? 0);
  if (clock[1]) return (Date.parse(clock[1]) / 1000 / DAY - originDay) * DAY + time - originOfDay;
  // The day of the start; in a trace of the evening, the next one.
  const start = originOfDay + about.start / 1e9;
  const midnight = Math.floor(start / DAY) * DAY;
  const at = midnight + time < start - DAY / 2 ? midnight + DAY + time : midnight + time;
  return at - originOfDay;
}

const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY];
/// The times that are written on the axis, and how far they are apart, in seconds.
function axisTimes() {
  const span = (view.to - view.from) * tick;
  const rough = span / Math.max(2, (width - LEFT) / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = wall && rough > 1 ? ROUND.find((n) => n >= rough) : undefined;
  const step = round ?? [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const shift = wall ? originOfDay : 0;
  const times = [];
  const from = Math.ceil((seconds(view.from) + shift) / step);
  const to = (seconds(view.to) + shift) / step;
  for (let n = from; n <= to; n++) times.push(n * step - shift);
  return { times, step };
}
