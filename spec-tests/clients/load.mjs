// An incident of the official Node driver: node load.mjs URI EVENTS CALLERS.
import { MongoClient } from 'mongodb';
import { writeEvents } from './listener.mjs';

const [uri, events, callers] = process.argv.slice(2);
const client = new MongoClient(uri, { maxPoolSize: 4, waitQueueTimeoutMS: 200 });
writeEvents(client, events);
const end = performance.now() + 4000;

async function work() {
  while (performance.now() < end) {
    // Some do not get a connection in time.
    await client.db('admin').command({ ping: 1 }).catch(() => undefined);
    await new Promise((resume) => setTimeout(resume, 20 * Math.random()));
  }
}

await Promise.all(Array.from({ length: Number(callers) }, work));
await client.close();
