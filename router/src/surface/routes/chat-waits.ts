/** Follows a chat of the playground that waits on a node: asks the node for its position, and sends it until the answer begins. */
import type { NodeId } from "@weiche/shared/ids.ts";
import type { NodeRequest } from "@weiche/shared/node-protocol.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Exchange } from "../../api/exchange.ts";

/** The position of a request that waits in a slot. */
export interface Waiting {
  /** 1 for the next request for its model. */
  readonly position: number;
  readonly estimateMs: number;
}

interface ChatWaitsParts {
  readonly ofNode: (node: NodeId) => Promise<readonly NodeRequest[]>;
  readonly clock: Clock;
}

const firstMs = 1_000;
const everyMs = 2_000;
/** For this time, chats on one node share the node's answer. */
const sharedMs = 1_000;

export class ChatWaits {
  readonly #parts: ChatWaitsParts;
  readonly #asked = new Map<NodeId, { readonly list: Promise<readonly NodeRequest[]>; readonly atMs: number }>();

  constructor(parts: ChatWaitsParts) {
    this.#parts = parts;
  }

  /** `told` returns whether it needs further positions. A node that cannot be asked is asked again. */
  follow(node: NodeId, { id, attempts }: Pick<Exchange, "id" | "attempts">, told: (at?: Waiting) => boolean): void {
    const ask = async () => {
      const list = await this.#ask(node).catch(() => []);
      const one = list.find(({ requestId, attempt }) => requestId === id && attempt === attempts);
      const { position, estimateMs } = one ?? {};
      const isHeard = told(position === undefined || estimateMs === undefined ? undefined : { position, estimateMs });
      if (isHeard) this.#parts.clock.after(everyMs, () => void ask());
    };
    this.#parts.clock.after(firstMs, () => void ask());
  }

  #ask(node: NodeId): Promise<readonly NodeRequest[]> {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [other, { atMs }] of this.#asked) if (nowMs - atMs >= sharedMs) this.#asked.delete(other);
    const asked = this.#asked.get(node) ?? { list: this.#parts.ofNode(node), atMs: nowMs };
    this.#asked.set(node, asked);
    return asked.list;
  }
}
