/** An agent's end of the link that shares no code with ours: made by proto-loader from the text of the protocol. */
import { join } from "node:path";
import { credentials, loadPackageDefinition, type ClientDuplexStream, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { WallClock } from "@weiche/shared/time/clock.ts";

type Message = Readonly<Record<string, unknown>>;

export class LinkClient implements Disposable {
  /** All but the heartbeats. */
  readonly received: Message[] = [];
  heartbeats = 0;
  /** Resolves with the first thing the router says. */
  readonly welcomed: Promise<void>;
  /** Resolves when the link has ended, with its status. */
  readonly ended: Promise<{ readonly code: number; readonly details: string }>;
  readonly call: ClientDuplexStream<Message, Message>;
  readonly #client: { close(): void };

  constructor(port: number, channel = credentials.createInsecure()) {
    // Node refuses addresses as server names.
    const options = { "grpc.ssl_target_name_override": "router" };
    const file = join(import.meta.dirname, "../../../proto/weiche/node/v1/node_control.proto");
    const definition = loadSync(file, { keepCase: true, longs: String, enums: String, oneofs: true });
    const { Link: link } = definition["weiche.node.v1.NodeControlService"] as unknown as { Link: RawMethod };
    const { requestSerialize } = link;
    link.requestSerialize = (message) => (Buffer.isBuffer(message) ? message : requestSerialize(message));
    const loaded = loadPackageDefinition(definition) as unknown as {
      weiche: {
        node: { v1: { NodeControlService: new (address: string, c: typeof channel, options: object) => LinkService } };
      };
    };
    const client = new loaded.weiche.node.v1.NodeControlService(`127.0.0.1:${port}`, channel, options);
    this.#client = client;
    this.call = client.link();
    this.call.on("data", (message: Message) => {
      if (message["message"] === "heartbeat") this.heartbeats++;
      else this.received.push(message);
    });
    this.welcomed = new Promise((resolve) => this.call.once("data", () => resolve()));
    this.ended = new Promise((resolve) => {
      this.call.on("error", ({ code, details }: ServiceError) => resolve({ code, details }));
      this.call.on("status", resolve);
    });
  }

  /** Bytes are sent as they are, in the place of a message. */
  say(message: Message | Buffer): void {
    this.call.write(message as Message);
  }

  [Symbol.dispose](): void {
    this.call.cancel();
    this.#client.close();
  }
}

interface RawMethod {
  requestSerialize(this: void, message: object): Buffer;
}

interface LinkService {
  link(): ClientDuplexStream<Message, Message>;
  close(): void;
}

/** The first message of an agent. */
export function helloOf(node: string, bootId: string, models: readonly string[] = ["m"]): Message {
  return { hello: { node, boot_id: bootId, agent_version: "0.1.0", slots: [{ name: "s", models }] } };
}

/** Boot ids in the order of their index. */
export function bootId(index: number, clock: WallClock = { now: () => 0 }): string {
  return `${(clock.now() + index).toString(16).padStart(8, "0")}-0000-7000-8000-000000000000`;
}
