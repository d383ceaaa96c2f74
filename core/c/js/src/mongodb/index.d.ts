export interface InstallOptions {
  /** A folder, made if it is missing: each pool records every input into a new file of it. */
  trace?: string | null;
  /**
   * A folder, made if it is missing: each pool keeps its latest inputs in 1 MiB of memory, and writes them into a new file of it
   * when a check-out times out, at most once a minute. The `cause` of the error names the file.
   */
  flightRecorder?: string | null;
}

/**
 * Replaces the pool of the official driver by Cenote's: `install(mongodb)` with what `import * as mongodb from "mongodb"` or
 * `require("mongodb")` gives, before the first client connects. A second call changes the given options for later pools.
 *
 * Throws `CenoteError`: `CENOTE_BAD_DRIVER` if that is no driver of a known version, `CENOTE_TOO_LATE` if a client has
 * connected, `CENOTE_BAD_OPTIONS`.
 */
export declare function install(mongodb: object, options?: InstallOptions): void;
