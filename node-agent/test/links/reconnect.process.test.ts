/** When links and data connections to a lost router dial again, on virtual time. */
import { expect, test } from "vitest";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { DataLink } from "../../src/links/data-link.ts";
import { RouterLinksRig } from "./router-links-rig.ts";

/** Nothing listens there. */
const gone = "127.0.0.1:1";
const boundsMs = [500, 1_000, 2_000, 4_000, 4_000];

/** The random numbers of one agent, drawn after each failed dial, with their times. */
class Dials {
  readonly atMs: number[] = [];
  readonly chances: number[] = [];
  readonly #clock: VirtualClock;
  readonly #random;

  constructor(clock: VirtualClock, seed: number) {
    this.#clock = clock;
    this.#random = createRandom(seed);
  }

  readonly random = (): number => {
    this.atMs.push(this.#clock.monotonicMs());
    this.chances.push(this.#random.next());
    return this.chances.at(-1)!;
  };

  get delaysMs(): readonly number[] {
    return this.atMs.slice(1).map((ms, dial) => ms - this.atMs[dial]!);
  }
}

/** Resolves after this many failed dials. Dialling takes no virtual time. */
async function failed(dials: Dials, count: number): Promise<void> {
  await expect.poll(() => dials.atMs.length, { timeout: 20_000, interval: 2 }).toBe(count);
}

/** Jumps from dial to dial. No dial comes before its time. */
async function follow(dials: Dials, clock: VirtualClock): Promise<void> {
  await failed(dials, 1);
  for (const [index, boundMs] of boundsMs.entries()) {
    clock.advance(dials.chances.at(-1)! * boundMs - 0.001);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(dials.atMs.length, "dialled too early").toBe(index + 1);
    clock.advance(0.002);
    await failed(dials, index + 2);
  }
}

function judge(agents: readonly Dials[]): void {
  for (const { delaysMs } of agents) {
    expect(delaysMs.length).toBe(boundsMs.length);
    expect(delaysMs.filter((ms, dial) => ms > boundsMs[dial]! + 0.01)).toEqual([]);
  }
  const [one, other] = agents.map(({ delaysMs }) => delaysMs);
  expect(one!.filter((ms, dial) => Math.abs(ms - other![dial]!) < 10)).toEqual([]);
}

test("data connections of two agents are not dialled in step, and within the limits", async () => {
  const agents = [];
  for (const seed of [1, 2]) {
    const clock = new VirtualClock(0);
    const dials = new Dials(clock, seed);
    const events = {
      dataConnectionUp: () => {},
      dataConnectionDown: () => {},
      dataConnectionFailed: () => {},
      dataConnectionBroken: () => {},
    };
    const link = new DataLink({
      onConnections: () => {},
      ...{ routerId: "r", clock, random: dials.random, identity: { node: asId<NodeId>("n"), bootId: "b" }, events },
      handle: (stream) => SimStream.taken(stream),
    });
    link.dial(gone);
    await follow(dials, clock);
    await link.close(0);
    expect(clock.pending).toBe(0);
    agents.push(dials);
  }
  judge(agents);
});

test("links of two agents are not dialled in step, and within the limits [C3]", async () => {
  const agents = [];
  for (const seed of [3, 4]) {
    const rig = new RouterLinksRig();
    const clock = new VirtualClock(0);
    const dials = new Dials(clock, seed);
    rig.clock = clock;
    rig.random = dials.random;
    rig.openLinks(gone);
    await follow(dials, clock);
    await rig.close();
    expect(clock.pending).toBe(0);
    agents.push(dials);
  }
  judge(agents);
});
