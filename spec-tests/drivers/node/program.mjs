// What the official driver does with either pool; prints figures as JSON:
// node program.mjs work URI EVENTS | waiter URI | pings URI CALLERS PINGS
import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { writeEvents } from './listener.mjs';

const [kind, uri, ...given] = process.argv.slice(2);
const together = (count, call) => Promise.all(Array.from({ length: count }, (_, number) => call(number)));

/// 64 callers ping, insert and find over 8 connections.
async function work(events) {
  const client = new MongoClient(uri, { maxPoolSize: 8, minPoolSize: 2, maxIdleTimeMS: 1000 });
  writeEvents(client, events);
  let rounds = 0;
  await together(64, async (caller) => {
    const things = client.db('shop').collection(`things${caller % 8}`);
    for (let round = 0; round < 100; round += 1) {
      await client.db('admin').command({ ping: 1 });
      await things.insertOne({ caller, round });
      const found = await things.findOne({ caller, round });
      if (found?.round === round) rounds += 1;
    }
  });
  await client.close();
  return { rounds };
}

/// How long a caller waits for the only connection once it is free, behind 16 that gave up.
async function waiter() {
  const client = new MongoClient(uri, { maxPoolSize: 1 });
  const admin = client.db('admin');
  await admin.command({ ping: 1 });
  const data = { failCommands: ['ping'], blockConnection: true, blockTimeMS: 1000 };
  await admin.command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data });
  const free = admin.command({ ping: 1 }).then(() => performance.now());
  await sleep(100);
  await together(16, async () => {
    // The driver takes the reason of `AbortSignal.timeout` for a time-out of its own.
    const patience = new AbortController();
    setTimeout(() => patience.abort(new Error('enough')), 100);
    const outcome = await admin.command({ ping: 1 }, { signal: patience.signal }).catch((error) => error.message);
    if (outcome !== 'enough') throw new Error(`a ping that was to be given up: ${JSON.stringify(outcome)}`);
  });
  await admin.command({ ping: 1 });
  const end = performance.now();
  const figures = { waited_ms: end - (await free) };
  await client.close();
  return figures;
}

/// What a ping costs, in µs.
async function pings(callers, each) {
  const client = new MongoClient(uri, { maxPoolSize: 10 });
  let cost = 0;
  // The first round connects and warms up.
  for (const count of [Math.ceil(each / 10) + 1, Number(each)]) {
    const start = process.cpuUsage();
    await together(Number(callers), async () => {
      for (let ping = 0; ping < count; ping += 1) await client.db('admin').command({ ping: 1 });
    });
    const { user, system } = process.cpuUsage(start);
    cost = (user + system) / (callers * count);
  }
  await client.close();
  return { cpu: cost };
}

console.log(JSON.stringify(await { work, waiter, pings }[kind](...given)));
