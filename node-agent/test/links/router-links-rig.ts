/** The agent's ends of the links, with simulated routers that share no code with them. Records all events. */
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { DesiredState } from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { NodeLoad } from "../../src/links/load.ts";
import { KnownRouters } from "../../src/links/known-routers.ts";
import { RouterLinks } from "../../src/links/router-links.ts";
import type { RouterLinkEvents } from "../../src/links/router-links-options.ts";
import type { UsageChannel } from "../../src/outbox/usage-channel.ts";
import { WireState } from "../../src/slots/slot-view.ts";
import { SimulatedLinkRouter, type Message } from "./simulated-link-router.ts";
import { toldEvents } from "@weiche/shared/testing/told-events.ts";

const model = asId<ModelId>("m");

export class RouterLinksRig {
  readonly bootId = uuidv7(systemClock);
  readonly #told = toldEvents<RouterLinkEvents>();
  readonly told = this.#told.told;
  readonly ledgers: (string | undefined)[] = [];
  readonly usage: unknown[][] = [];
  /** Events about the routers' lives and settled attempts. */
  readonly answers: unknown[][] = [];
  /** Every channel that came up. */
  readonly channels: UsageChannel[] = [];
  readonly seenRules: (readonly ModelRules[])[] = [];
  readonly wishes: DesiredState[] = [];
  /** The addresses that names resolve to. */
  readonly names = new Map<string, readonly string[]>();
  readonly load: NodeLoad = {
    slots: [
      {
        name: asId<SlotName>("s"),
        models: [model],
        state: WireState.DRAINING_OPEN,
        activeModel: model,
        nextModel: asId<ModelId>("n"),
        running: 3,
        runningByRouter: new Map([["router-1", 2]]),
        waiting: 1,
        waiters: [{ model: "n", waiting: 1 }],
        closesInMs: 800.4,
        stateAgeMs: 9_199.6,
        sleepers: [],
      },
    ],
    engines: new Map(),
    host: { memoryTotalBytes: 2 ** 40 },
    gpus: [{ index: 1, uuid: "GPU-1", temperatureCelsius: 61 }],
    maintenance: false,
    admitting: true,
  };
  known = new KnownRouters();
  clock: Clock = systemClock;
  random: () => number = seeded(1);
  readonly #routers: SimulatedLinkRouter[] = [];
  #links: RouterLinks | undefined;

  async openRouter(more: Message = {}, host?: string, port?: number): Promise<SimulatedLinkRouter> {
    const welcome = { router_id: "router-1", data_address: "127.0.0.1:1", ...more };
    const router = await new SimulatedLinkRouter(welcome).listen(host, port);
    this.#routers.push(router);
    return router;
  }

  openLinks(...addresses: readonly string[]): RouterLinks {
    this.#links = new RouterLinks({
      routers: addresses,
      known: this.known,
      clock: this.clock,
      random: this.random,
      hello: {
        node: asId<NodeId>("gpu-1"),
        bootId: this.bootId,
        agentVersion: "0.1.0",
        slots: [{ name: asId<SlotName>("s"), models: [model], engines: [] }],
      },
      load: () => this.load,
      resolve: async (name) => {
        const found = this.names.get(name);
        if (!found) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
        return found;
      },
      usage: {
        linkUp: (channel) => {
          this.channels.push(channel);
          this.usage.push(["up", channel.routerId]);
        },
        acknowledged: (...args) => this.usage.push(["ack", ...args]),
        linkDown: (routerId) => this.usage.push(["down", routerId]),
        committedTo: (ledger) => this.ledgers.push(ledger),
      },
      answers: {
        linkUp: (routerId) => this.answers.push(["up", routerId]),
        linkDown: (routerId, inOrder) => this.answers.push(["down", routerId, inOrder]),
        replaced: (routerId) => this.answers.push(["replaced", routerId]),
        dataConnections: () => {},
        settled: (routerId, attempts) => this.answers.push(["settled", routerId, ...attempts]),
      },
      handle: (stream) => SimStream.taken(stream),
      onRules: (news) => this.seenRules.push(news),
      onDesiredState: (state) => this.wishes.push(state),
      events: this.#told.events,
    });
    return this.#links;
  }

  async close(): Promise<void> {
    await this.#links?.close();
    for (const router of this.#routers.splice(0)) router[Symbol.dispose]();
  }
}

function seeded(seed: number): () => number {
  const random = createRandom(seed);
  return () => random.next();
}

export function at({ port }: SimulatedLinkRouter, host = "127.0.0.1"): string {
  return `${host}:${port}`;
}
