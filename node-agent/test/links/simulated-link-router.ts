/** A router's end of the link that shares no code with ours. proto-loader makes it from the text of the protocol. */
import { join } from "node:path";
import { loadPackageDefinition, Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

export type Message = Readonly<Record<string, unknown>>;

export class SimulatedLinkRouter implements Disposable {
  /** The messages of agents on all links, oldest first. */
  readonly heard: Message[] = [];
  /** Links that are open. */
  readonly links = new Set<ServerDuplexStream<Message, Message>>();
  readonly #server = new Server();
  /** The answer to every hello. */
  welcome: Message;
  port = 0;

  readonly #heartbeats = setInterval(() => this.say({ heartbeat: {} }), 1_000).unref();

  constructor(welcome: Message) {
    this.welcome = welcome;
  }

  async listen(host = "127.0.0.1", port = 0): Promise<this> {
    const file = join(import.meta.dirname, "../../../proto/weiche/node/v1/node_control.proto");
    const loaded = loadPackageDefinition(
      loadSync(file, { keepCase: true, longs: String, enums: String, oneofs: true }),
    ) as unknown as {
      weiche: { node: { v1: { NodeControlService: { service: Parameters<Server["addService"]>[0] } } } };
    };
    this.#server.addService(loaded.weiche.node.v1.NodeControlService.service, {
      link: (call: ServerDuplexStream<Message, Message>) => this.#accept(call),
    });
    const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    this.port = await new Promise((resolve, reject) =>
      this.#server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    return this;
  }

  heardOf<T = Message>(kind: string): T[] {
    return this.heard.flatMap((message) => (message["message"] === kind ? [message[kind] as T] : []));
  }

  say(message: Message): void {
    for (const link of this.links) link.write(message);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#heartbeats);
    this.#server.forceShutdown();
  }

  #accept(call: ServerDuplexStream<Message, Message>): void {
    this.links.add(call);
    call.on("data", (message: Message) => {
      this.heard.push(message);
      if (message["message"] === "hello") call.write({ welcome: this.welcome });
    });
    call.on("error", () => {});
    call.on("end", () => call.end());
    call.on("close", () => this.links.delete(call));
    call.on("cancelled", () => this.links.delete(call));
  }
}
