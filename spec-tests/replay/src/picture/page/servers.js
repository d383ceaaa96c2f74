// ---- The servers of the client: a lane each, with what it was when.

const servers = about.servers?.addresses ?? [];
const hasPool = !about.isTopology;
/// What a server was: as tall as it is useful, so that no two roles differ in colour only.
const ROLES = {
  RSPrimary: { colour: "--primary", share: 1, name: "primary" },
  Standalone: { colour: "--primary", share: 1, name: "standalone" },
  Mongos: { colour: "--primary", share: 1, name: "router" },
  LoadBalancer: { colour: "--primary", share: 1, name: "load balancer" },
  RSSecondary: { colour: "--secondary", share: 0.7, name: "secondary" },
  RSArbiter: { colour: "--other", share: 0.4, name: "arbiter" },
  RSOther: { colour: "--other", share: 0.4, name: "other member" },
  RSGhost: { colour: "--other", share: 0.4, name: "member without a set" },
  Unknown: { colour: "--failed", share: 0.2, name: "unknown" },
};
const roleSpans = (about.servers?.spans ?? []).map((one) => ({
  ...one,
  role: ROLES[one.kind],
  start: Math.max(0, Math.round(ticksOf(one.from))),
  end: Math.max(0, Math.round(ticksOf(one.to))),
}));
const roleEnd = Uint32Array.from(roleSpans, (one) => one.end);
const roleLength = Uint32Array.from(roleSpans, (one) => one.end - one.start);
const roles = rows(
  Uint32Array.from(roleSpans, (one) => one.server),
  roleEnd,
  roleLength,
);
/// It was lost: not only not checked yet.
const isLost = (one) => one.kind === "Unknown" && one.text !== "Unknown: not checked yet";
/// What the server was before.
function before(one) {
  const earlier = roleSpans.filter((other) => other.server === one.server && other.end <= one.start && other !== one);
  return earlier.at(-1);
}
/// Where `n` stops, in the order of time: elections, servers that were lost or removed.
const serverStops = roleSpans
  .flatMap((one, i) => {
    const stops = [];
    if (one.elected || isLost(one)) stops.push({ i, at: one.start });
    if (one.removed) stops.push({ i, at: one.end });
    return stops;
  })
  .sort((a, b) => a.at - b.at);

/// Few servers have lanes that can be read; many share the room.
const serverLane = () => {
  if (servers.length === 0) return 0;
  const room = hasPool ? 120 : Math.max(120, height - AXIS - 3 * GAP);
  return Math.max(3, Math.min(hasPool ? 18 : 34, Math.floor(room / servers.length)));
};
const serversHeight = () => servers.length * serverLane();

function paintServers(top) {
  const lane = serverLane();
  for (let server = 0; server < servers.length; server++) {
    const y = top + server * lane;
    each(roles, server, (left, right, i) => paintRole(roleSpans[i], left, right, y, lane));
    if (lane >= 10 || server % Math.ceil(12 / lane) === 0) paintServerName(server, y + lane / 2);
  }
  for (const one of roleSpans) paintEvents(one, top + one.server * lane + lane / 2, lane);
}
function paintRole(one, left, right, y, lane) {
  const from = Math.max(LEFT, Math.round(left));
  const to = Math.min(width - RIGHT, Math.max(Math.round(right), Math.round(left) + 1));
  if (to <= from) return;
  const tall = Math.max(1, Math.round((lane - (lane > 5 ? 2 : 0)) * one.role.share));
  draw2d.fillStyle = colours[one.role.colour];
  draw2d.fillRect(from, y + lane - tall - (lane > 5 ? 1 : 0), to - from, tall);
  if (lane < 12 || one.role.share < 0.5) return;
  draw2d.font = "10px system-ui, sans-serif";
  draw2d.textAlign = "left";
  draw2d.textBaseline = "middle";
  if (draw2d.measureText(one.role.name).width > to - from - 8) return;
  draw2d.fillStyle = textOn(colours[one.role.colour]);
  draw2d.fillText(one.role.name, from + 4, y + lane - tall / 2 - 1);
}
/// An election is a star where it begins, a removal a cross where it ends.
function paintEvents(one, middle, lane) {
  const size = Math.min(6, lane / 2);
  const mark = (at, colour, draw) => {
    const left = x(at);
    if (left < LEFT || left > width - RIGHT) return;
    draw2d.fillStyle = draw2d.strokeStyle = colours[colour];
    draw(left);
  };
  if (one.elected)
    mark(one.start, "--ink", (left) =>
      polygon(draw2d, [left, middle - size], [left + size, middle], [left, middle + size], [left - size, middle]),
    );
  if (one.removed)
    mark(one.end, "--failed", (left) =>
      lines(
        draw2d,
        2,
        [
          [left - size, middle - size],
          [left + size, middle + size],
        ],
        [
          [left - size, middle + size],
          [left + size, middle - size],
        ],
      ),
    );
}
/// The end of a name says more than its beginning where there is no room.
function paintServerName(server, y) {
  draw2d.font = "11px system-ui, sans-serif";
  let name = servers[server];
  const short = name.replace(/^([^.:]+)\.[^:]*/, "$1");
  if (draw2d.measureText(name).width > LEFT - 10) name = short;
  while (name.length > 4 && draw2d.measureText(name).width > LEFT - 10) name = `…${name.slice(2)}`;
  label(name, y, servers[server] === about.address ? "--ink" : "--faint");
}

const roleItem = (i) => ({
  kind: "role",
  index: i,
  from: roleSpans[i].start,
  to: roleSpans[i].end,
  server: roleSpans[i].server,
});
/// What a server was at a time; -1 if it was not there.
const roleAt = (server, at, reach = 0) => intervalAt(roles, server, at, reach);
/// The role of the pool's own server at a time, if that is known.
function ownRoleAt(at) {
  const server = servers.indexOf(about.address);
  if (server < 0) return null;
  // What changed with the pool counts, not what ended then; times are rounded to a tick.
  let i = roleAt(server, at + 1);
  if (i < 0) i = roleAt(server, at, 1);
  return i < 0 ? null : roleItem(i);
}
const roleTitle = (i) => `${servers[roleSpans[i].server]} ${roleSpans[i].role.name} for ${span(roleLength[i])}`;
function describeRole(i) {
  const one = roleSpans[i];
  const lines = [roleTitle(i), `from ${both(one.start)}`, one.text];
  if (one.elected) lines.push("elected");
  if (one.removed) lines.push(`removed: ${one.removed}`);
  return lines.join("\n");
}
function aboutRole(i) {
  const one = roleSpans[i];
  const was = before(one);
  const next = roleSpans.findIndex((other) => other.server === one.server && other.start >= one.end && other !== one);
  const pool = [];
  if (hasPool && servers[one.server] === about.address) {
    const [low, high] = between(data.markAt, one.start, one.end);
    for (let mark = low; mark < high; mark++)
      if ([READY, CLEAR, CLOSED].includes(data.markKind[mark])) pool.push(mark);
  }
  return [
    facts(
      ["is", one.text],
      ["from", both(one.start)],
      ["until", both(one.end)],
      was && ["before", linkTo(roleItem(roleSpans.indexOf(was)), was.role.name)],
      next >= 0 && ["then", linkTo(roleItem(next), roleSpans[next].role.name)],
      one.removed && ["removed", one.removed],
    ),
    listed(
      "what happened to its pool",
      pool.map((mark) => linkTo(markItem(mark), `${shown(seconds(data.markAt[mark]), 1e-3)} ${title(markItem(mark))}`)),
    ),
    one.step > 0 ? command(`cenote replay TOPOLOGY --until step=${one.step}`) : "",
  ];
}
/// What the servers were at a time, with links.
const rolesAt = (at) =>
  servers
    .map((_, server) => roleAt(server, at))
    .filter((i) => i >= 0)
    .map((i) => [linkTo(roleItem(i), `${servers[roleSpans[i].server]}: ${roleSpans[i].role.name}`)]);
/// The changes of a time, with links to what came of them.
function changesOf(from, to, most) {
  const all = (about.servers?.changes ?? []).filter(({ at }) => ticksOf(at) >= from - 1 && ticksOf(at) <= to + 1);
  return listed(
    `changes of the topology: ${many(all.length)}`,
    all.map(({ at, step, text }) => {
      const i = roleSpans.findIndex((one) => one.step === step);
      const time = shown(at, 1e-3);
      return [i < 0 ? time : linkTo(roleItem(i), time), ` ${text}`];
    }),
    most,
  );
}
