/**
 * A router with its default limits, an agent, eight streams that run all the time, and one attack after the other beside
 * them. Each attack is compared with the seconds right before it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Cluster } from "../cluster/cluster.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import type { Attack, Tally, Target } from "./attack.ts";
import { attacks } from "./attacks.ts";
import { PacedStreams, paceMs, type Gaps } from "./paced-streams.ts";

interface Outcome {
  readonly quiet: Gaps;
  readonly attacked: Gaps;
  /** Good streams that were cut. */
  readonly cut: number;
  /** Memory of the router: before the attack, and the most during it. */
  readonly memoryMb: { readonly before: number; readonly peak: number };
  readonly tally: Tally;
  readonly mistakes: readonly string[];
}

const attackerFile = join(import.meta.dirname, "attacker.ts");
const model = "sim";
/** Fewer than one account may ask for. */
const places = 64;

export class Arena implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #streams: PacedStreams;

  private constructor(cluster: Cluster, streams: PacedStreams) {
    this.#cluster = cluster;
    this.#streams = streams;
  }

  static async open(): Promise<Arena> {
    const cluster = await Cluster.start({
      catalogue: catalogueOf(model),
      router: { limits: {} },
      agents: {
        "node-1": {
          slots: [{ name: "a", engines: [{ ...simEngine(model, { "itl-ms": paceMs }), maxConcurrent: places }] }],
        },
      },
    });
    const { apiKey } = await cluster.account("Streams");
    return new Arena(cluster, new PacedStreams({ baseUrl: cluster.baseUrl, apiKey, model }));
  }

  /** Measures `quietMs` without the attack, then `attackMs` with it. */
  async run(attack: Attack, { quietMs, attackMs }: { quietMs: number; attackMs: number }): Promise<Outcome> {
    const given = (await attack.prepare?.(this.#cluster)) ?? {};
    const cutBefore = this.#streams.cut.length;
    const quiet = await this.#streams.measure(quietMs);
    const before = await readSamples(this.#cluster.router);
    const memory = watchMemory(this.#cluster.router.pid);
    const attacker = await startAttacker(attack, this.#targetOf(attack, given));
    const attacked = await this.#streams.measure(attackMs);
    const memoryMb = memory.stop();
    const tally = await attacker.stop();
    const after = await readSamples(this.#cluster.router);
    const grown = (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0);
    return {
      ...{ quiet, attacked, tally, memoryMb },
      cut: this.#streams.cut.length - cutBefore,
      mistakes: attack.mistakes({ tally, grown }),
    };
  }

  /** Each attack has its own address, so that none uses up the limit of another one. */
  #targetOf(attack: Attack, given: Readonly<Record<string, string>>): Target {
    const port = (listener: string) => Number(this.#cluster.router.listen[listener]!.split(":").at(-1));
    const localAddress = `127.0.0.${2 + attacks.indexOf(attack)}`;
    return { apiPort: port("api"), portalPort: port("portal"), localAddress, given };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#streams.stop();
    await this.#cluster[Symbol.asyncDispose]();
  }
}

/** Resolves once it has begun. */
async function startAttacker({ name }: Attack, target: Target): Promise<{ stop(): Promise<Tally> }> {
  const child = spawn(process.execPath, [attackerFile, name, JSON.stringify(target)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  if ((await lines.next()).done) throw new Error(`the attacker did not start: ${name}`);
  return {
    async stop() {
      child.stdin.end();
      const { value, done } = await lines.next();
      await exited;
      if (done) throw new Error(`the attacker broke off: ${name}`);
      return JSON.parse(value) as Tally;
    },
  };
}

function watchMemory(pid: number): { stop(): Outcome["memoryMb"] } {
  const residentMb = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1_024;
  const before = residentMb();
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, residentMb())), 50);
  return {
    stop() {
      clearInterval(timer);
      return { before, peak };
    },
  };
}
