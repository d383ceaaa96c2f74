// Whether a client has listeners for the events of its pools. Asking it at each check-out would cost as much as the rest.

const known = new WeakMap();

/// Those of a client, which all of its pools share.
export function listenersOf(client, names) {
  if (!client?.eventNames) return { areThere: true };
  if (!known.has(client)) known.set(client, new Listeners(client, new Set(names)));
  return known.get(client);
}

class Listeners {
  areThere;
  #isLost = false;

  constructor(client, names) {
    const look = () => client.eventNames().some((name) => names.has(name));
    this.areThere = look();
    client.on("newListener", (name) => {
      if (names.has(name)) this.areThere = true;
    });
    client.on("removeListener", (name) => {
      // `removeAllListeners` takes these two as well: then there may always be some.
      if (name === "newListener") this.#isLost = true;
      if (names.has(name) || this.#isLost) this.areThere = this.#isLost || look();
    });
  }
}
