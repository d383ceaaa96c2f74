export * from "./abi.js";
export { CenoteError, load, NO_MAINTENANCE } from "./library.js";
export { optionsFromUri, Pool } from "./pool.js";
