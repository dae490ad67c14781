/** Opens a router's data listener in plain buffers. Agents dial it, and each connection is a peer. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { PlainPeer } from "./plain-peer.ts";

export class PlainRouter implements AsyncDisposable {
  readonly #server: Server;
  readonly peers: PlainPeer[] = [];
  #taken = 0;
  onPeer: (peer: PlainPeer) => void = () => {};

  static async listen(): Promise<PlainRouter> {
    const router = new PlainRouter();
    router.#server.listen(0, "127.0.0.1");
    await once(router.#server, "listening");
    return router;
  }

  private constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      const peer = new PlainPeer(socket, "router");
      this.peers.push(peer);
      this.onPeer(peer);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves with the next connection of an agent, after the question for the identity. */
  async next(): Promise<PlainPeer> {
    const at = this.#taken++;
    while (this.peers.length <= at) await once(this.#server, "connection");
    const peer = this.peers[at]!;
    await peer.ending(peer.open(["/weiche/identity"], ""));
    return peer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const peer of this.peers) peer.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}
