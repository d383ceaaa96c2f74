// What a program in TypeScript sees of the package. It is compiled, and not run.
import type { Action, Cause, Options } from "cenote";
import { ActionKind, CenoteError, NO_MAINTENANCE, optionsFromUri, Pool, Purpose } from "cenote";
import { install } from "cenote/mongodb";
import * as mongodb from "mongodb";

install(mongodb, { trace: "traces" });
const options: Options = { ...optionsFromUri("mongodb://db/"), maxIdleTime: 1000, pauseAfterFailure: NO_MAINTENANCE };
using pool = new Pool("db:27017", options, performance.now(), { isReady: true });
pool.checkOut(1, 1, 1, Infinity, Purpose.CURSOR);
const action: Action | null = pool.nextAction();
if (action?.kind === ActionKind.DELIVER) pool.checkIn(2, action.connection, action.payload);
const cause: Cause = { text: "reset", topologyVersion: { processId: new Uint8Array(12), counter: 1n } };
pool.clear(3, cause, { interrupt: true });
// @ts-expect-error: a cause is no text
pool.clear(4, "reset");
// @ts-expect-error: there is no such option
pool.setOptions(5, { maxPoolSise: 1 });
try {
  pool.close(6);
} catch (error) {
  if (error instanceof CenoteError) console.log(error.code, pool.connection(1)?.since.toFixed(3), pool.generation() ?? 0);
}
