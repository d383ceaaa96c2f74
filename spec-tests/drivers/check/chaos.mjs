// Chaos for the official Node driver: node chaos.mjs URI EVENTS SECONDS PAUSE; each caller pauses for PAUSE ms on average after a ping.
import { MongoClient } from 'mongodb';
import { writeEvents } from './listener.mjs';

const [uri, events, seconds, pause] = process.argv.slice(2);
const end = performance.now() + 1000 * seconds;
const sleep = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));
const options = { appName: 'chaos', maxPoolSize: 8, minPoolSize: 2, maxIdleTimeMS: 500 };
const client = new MongoClient(uri, { ...options, waitQueueTimeoutMS: 500, heartbeatFrequencyMS: 500, connectTimeoutMS: 1000 });
const figures = { done: 0, failed: 0, given_up: 0 };
writeEvents(client, events);

// A third of the pings are aborted within 20 ms.
async function call() {
  while (performance.now() < end) {
    const patience = new AbortController();
    const timer = Math.random() < 1 / 3 && setTimeout(() => patience.abort(), 20 * Math.random());
    const ping = client.db('admin').command({ ping: 1 }, { signal: patience.signal });
    figures[await ping.then(() => 'done', () => (patience.signal.aborted ? 'given_up' : 'failed'))] += 1;
    clearTimeout(timer);
    if (pause > 0) await sleep(2 * pause * Math.random());
  }
}

const hellos = ['hello', 'isMaster', 'ismaster'];
const faults = [
  { failCommands: ['ping'], closeConnection: true },
  { failCommands: hellos, closeConnection: true },
  { failCommands: ['ping'], errorCode: 91 },
  { failCommands: hellos, blockConnection: true, blockTimeMS: 4000 },
];

async function misbehave() {
  const admin = new MongoClient(uri);
  for (let turn = 0; performance.now() < end - 1300; turn += 1) {
    await sleep(1300);
    const data = { ...faults[turn % faults.length], appName: 'chaos' };
    await admin.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 2 }, data });
  }
  await admin.close();
}

await Promise.all([misbehave(), ...Array.from({ length: 32 }, call)]);
await client.close();
console.log(JSON.stringify(figures));
