// An incident of the official Node driver: node load.mjs URI EVENTS CALLERS; of no callers: bursts.
import { MongoClient } from 'mongodb';
import { writeEvents } from './listener.mjs';

const [uri, events, callers] = process.argv.slice(2);
const client = new MongoClient(uri);
writeEvents(client, events);
const end = performance.now() + 4000;

// Some do not get a connection in time.
const ping = () => client.db('admin').command({ ping: 1 }).catch(() => undefined);
const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));

async function work() {
  while (performance.now() < end) {
    await ping();
    await pause(20 * Math.random());
  }
}

async function bursts() {
  for (let burst = 0; burst < 24; burst += 1) {
    const all = Array.from({ length: 16 }, ping);
    await pause(250);
    await Promise.all(all);
  }
}

await (callers > 0 ? Promise.all(Array.from({ length: Number(callers) }, work)) : bursts());
await client.close();
