/** The router's end of the link with a simulated ledger and catalogue, and agents that share no code with it. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { plainJobs } from "@weiche/shared/testing/plain-jobs.ts";
import type { UsageLedger } from "../../src/usage/usage-ledger.ts";
import type { DesiredState, KnownRouter } from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { NodeLinkEvents } from "../../src/nodes/node-link-session.ts";
import { openNodeLink, type NodeLink } from "../../src/nodes/node-link.ts";
import type { NodeView } from "../../src/nodes/node-view.ts";
import { NodeRegistry } from "../../src/nodes/registry.ts";
import { bootId, helloOf, LinkClient } from "./link-client.ts";

export const node = asId<NodeId>("gpu-1");
export const rules: ModelRules = {
  id: asId<ModelId>("m"),
  category: "embeddings",
  contextTokens: 8192,
  reasoning: { mode: "default-on", efforts: ["low", "high"], default: "high", templateKwargsAccepted: true },
  toolsEnforced: true,
  images: { max: 4, formats: ["png"] },
  embeddings: {
    dimensions: { min: 64, max: 2048, default: 1024 },
    inputTokens: 8192,
    instruction: { default: "Represent.", template: "{instruction} {input}" },
  },
};

export class NodeLinkRig implements AsyncDisposable {
  catalogue: ModelRules[] = [rules];
  /** Nodes and the models that the catalogue gives to others. */
  readonly foreign = new Set<string>();
  desired: DesiredState | undefined;
  routers: readonly KnownRouter[] = [];
  /** Settled by the test; undefined: the ledger commits at once. */
  commit: PromiseWithResolvers<void> | undefined;
  readonly recorded: (readonly [NodeId, readonly UsageRecord[]])[] = [];
  readonly told: unknown[][] = [];
  readonly boots: unknown[][] = [];
  readonly registry = new NodeRegistry();
  link!: NodeLink;
  readonly #clients: LinkClient[] = [];

  /** `ledger`: a real one, instead of the simulated. */
  static async open(
    ledger?: UsageLedger,
    more: { connectionUnusedMsMax?: number; tls?: TlsFiles } = {},
  ): Promise<NodeLinkRig> {
    const rig = new NodeLinkRig();
    rig.link = await openNodeLink({
      ledgerName: () => "ledger",
      routers: () => rig.routers,
      listen: { host: "127.0.0.1", port: 0 },
      routerId: "router-1",
      dataAddress: "router1.example:7444",
      clock: systemClock,
      job: plainJobs(systemClock),
      registry: rig.registry,
      ledger: ledger ?? {
        async record(from, records) {
          rig.recorded.push([from, records]);
          await rig.commit?.promise;
        },
      },
      rulesOf: (models) => rig.catalogue.filter(({ id }) => models.includes(id)),
      mayHost: (name, model) => !rig.foreign.has(`${name} ${model}`),
      desiredStateOf: () => rig.desired,
      onBoot: (...args) => rig.boots.push(args),
      events: rig.#events(),
      ...more,
    });
    return rig;
  }

  dial(): LinkClient {
    const client = new LinkClient(this.link.address.port);
    this.#clients.push(client);
    return client;
  }

  /** An agent that has been welcomed. */
  async linked(boot = 1, name: string = node): Promise<LinkClient> {
    const client = this.dial();
    client.say(helloOf(name, bootId(boot)));
    await client.welcomed;
    return client;
  }

  view(): NodeView {
    return this.registry.view(systemClock.monotonicMs())[0]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client[Symbol.dispose]();
    await this.link.close(1_000);
  }

  #events(): NodeLinkEvents {
    const tell =
      (event: string) =>
      (...args: unknown[]) =>
        void this.told.push([event, ...args]);
    return {
      nodeLinked: tell("linked"),
      nodeUnlinked: tell("unlinked"),
      nodeRefused: tell("refused"),
      hostingIgnored: tell("ignored"),
      reportUnreadable: tell("unreadable"),
      usageRejected: tell("rejected"),
      usageNotRecorded: tell("not recorded"),
    };
  }
}
