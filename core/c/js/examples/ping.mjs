// Sends 1,000 pings from 8 callers through Cenote's pool: node ping.mjs mongodb://127.0.0.1:27017/ [TRACES]
import { install } from "cenote/mongodb";
import * as mongodb from "mongodb";

const [uri, trace] = process.argv.slice(2);
install(mongodb, { trace });
const client = new mongodb.MongoClient(uri, { maxPoolSize: 4 });
let pings = 0;
const caller = async () => {
  for (let ping = 0; ping < 125; ping += 1) {
    await client.db("admin").command({ ping: 1 });
    pings += 1;
  }
};
await Promise.all(Array.from({ length: 8 }, caller));
await client.close();
console.log(`${pings} pings`);
