import fs from 'node:fs';

const pool = ['Created', 'Ready', 'Cleared', 'Closed'].map((name) => `connectionPool${name}`);
const connection = ['Created', 'Ready', 'Closed', 'CheckOutStarted', 'CheckOutFailed', 'CheckedOut', 'CheckedIn'];
const names = [...pool, ...connection.map((name) => `connection${name}`)];

export function writeEvents(client, path) {
  const out = fs.createWriteStream(path, { flags: 'w' });
  for (const name of names) {
    client.on(name, (event) => {
      const { address, connectionId, durationMS, reason, interruptInUseConnections } = event;
      const { maxPoolSize, minPoolSize, maxConnecting, maxIdleTimeMS, waitQueueTimeoutMS } = event.options ?? {};
      const options = event.options && { maxPoolSize, minPoolSize, maxConnecting, maxIdleTimeMS, waitQueueTimeoutMS };
      const [type, at] = [name[0].toUpperCase() + name.slice(1), (performance.timeOrigin + performance.now()) / 1000];
      const line = { at, type, address, connectionId, durationMS, reason, interruptInUseConnections };
      out.write(JSON.stringify({ ...line, error: event.error?.message, options }) + '\n');
    });
  }
}
