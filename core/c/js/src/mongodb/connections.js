// The connections of a pool: how they are made, and what ends them.

import { CauseKind, CauseStage } from "../abi.js";

/// A connection that is being made.
class Establishment {
  isAborted = false;
  #token;
  #connection = null;

  constructor(token, Connection) {
    this.#token = token;
    const made = (...given) => (this.#connection = new Connection(...given));
    // The driver constructs it once its socket is connected, and then says hello and authenticates.
    const connectionType = function (...given) {
      return made(...given);
    };
    this.options = { cancellationToken: token, connectionType };
  }

  abort() {
    this.isAborted = true;
    this.#token.emit("cancel");
    this.#connection?.destroy();
  }
}

export class Connections {
  #driver;
  #pool;
  #server;
  #machine;
  #feed;
  #established = new Map();
  #pending = new Map();

  /// `feed` tells the machine something, perhaps about an error of a connection.
  constructor(driver, pool, server, machine, feed) {
    this.#driver = driver;
    this.#pool = pool;
    this.#server = server;
    this.#machine = machine;
    this.#feed = feed;
  }

  get(id) {
    return this.#established.get(id);
  }

  establish({ connection: id, generation }) {
    const { connect, CancellationToken, Connection } = this.#driver;
    const { options, mongoLogger } = this.#pool;
    const { client } = this.#server.topology;
    const establishment = new Establishment(new CancellationToken(), options.connectionType ?? Connection);
    this.#pending.set(id, establishment);
    const given = { ...options, ...establishment.options, id, generation: generation + 1, mongoLogger };
    given.authProviders = client.s.authProviders;
    // Programs can add to it while the client lives. 6.x has the second one.
    given.metadata = client.options.metadata ?? given.metadata;
    given.extendedMetadata = client.options.extendedMetadata;
    connect(given).then(
      (made) => this.#succeeded(id, establishment, made),
      (error) => this.#failed(id, establishment, error, given.generation),
    );
  }

  abort(id) {
    this.#pending.get(id)?.abort();
    this.#pending.delete(id);
  }

  close(id) {
    const closed = this.#established.get(id);
    this.#established.delete(id);
    closed?.destroy();
  }

  interrupt(id) {
    const error = new this.#driver.PoolClearedOnNetworkError(this.#pool);
    // After the driver has changed what it knows of the server, as in its own pool.
    queueMicrotask(() => this.get(id)?.onError(error));
  }

  /// Nothing decides for them any more.
  abandon() {
    for (const id of this.#pending.keys()) this.abort(id);
    for (const [id, connection] of this.#established) {
      if (!this.#pool.checkedOut.has(connection)) this.close(id);
    }
  }

  #succeeded(id, establishment, connection) {
    if (establishment.isAborted) {
      connection.destroy();
      return;
    }
    const { serviceId } = connection;
    if (this.#pool.loadBalanced && serviceId?.id?.length !== 12) {
      connection.destroy();
      const error = new this.#driver.MongoRuntimeError(`The serviceId of ${this.#pool.address} is no ObjectId: ${serviceId}`);
      this.#failed(id, establishment, error);
      return;
    }
    this.#pending.delete(id);
    this.#established.set(id, connection);
    const { APM_EVENTS, Connection } = this.#driver;
    const pool = this.#pool;
    for (const event of [...APM_EVENTS, Connection.CLUSTER_TIME_RECEIVED]) {
      connection.on(event, (it) => pool.emit(event, it));
    }
    if (pool.loadBalanced) {
      connection.on(Connection.PINNED, (kind) => pool.metrics.markPinned(kind));
      connection.on(Connection.UNPINNED, (kind) => pool.metrics.markUnpinned(kind));
    }
    connection.on(Connection.CLOSE, () => this.#closedByPeer(id, connection));
    connection.markAvailable();
    this.#feed((now) => {
      if (pool.loadBalanced) this.#handshaken(now, id, connection);
      this.#machine.established(now, id, 0);
    });
    if (connection.closed) this.#closedByPeer(id, connection);
  }

  /// Behind a load balancer a connection takes the generation of its service.
  #handshaken(now, id, connection) {
    const { serviceId } = connection;
    this.#machine.handshaken(now, id, serviceId.id);
    connection.generation = this.#machine.generation(serviceId.id) + 1;
    this.#pool.serviceGenerations.set(serviceId.toHexString(), connection.generation);
  }

  /// One in use is told by its operation.
  #closedByPeer(id, connection) {
    if (this.get(id) !== connection || this.#pool.checkedOut.has(connection)) return;
    const cause = this.causeOf(connection.error);
    this.#feed((now) => this.#machine.idleClosedByPeer(now, id, cause), { id, error: connection.error });
  }

  #failed(id, establishment, error, generation) {
    if (establishment.isAborted) return;
    const { MongoNetworkError, MongoServerError } = this.#driver;
    if (error instanceof MongoNetworkError || error instanceof MongoServerError) error.connectionGeneration = generation;
    // SDAM first: it may clear this pool, and that abort this establishment.
    this.#server.handleError(error);
    if (establishment.isAborted) return;
    this.#pending.delete(id);
    const cause = { ...this.causeOf(error), stage: CauseStage.HELLO };
    this.#feed((now) => this.#machine.establishFailed(now, id, cause), { id, error });
  }

  /// What the machine keeps of an error. The error itself goes to the caller.
  causeOf(error) {
    const { MongoServerError, MongoNetworkTimeoutError } = this.#driver;
    const text = error?.message ?? "the driver cleared the pool";
    if (error instanceof MongoServerError) {
      const code = typeof error.code === "number" ? error.code : null;
      return { text, kind: CauseKind.COMMAND, code, codeName: error.codeName ?? null };
    }
    return { text, kind: error instanceof MongoNetworkTimeoutError ? CauseKind.TIMEOUT : CauseKind.NETWORK };
  }
}
