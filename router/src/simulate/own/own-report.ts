/** What a simulated week says: waits by model, what holds up each slot, and what its GPUs earn. Plain data. */
import type { Measured } from "../engine/measured.ts";
import type { Simulation } from "../engine/simulation.ts";

export interface OwnReport {
  readonly models: readonly ReportedModel[];
  /** The slot in which requests waited longest altogether comes first. */
  readonly slots: readonly ReportedSlot[];
  /** Whether one request of a hundred waits for longer than a second. */
  readonly isWaiting: boolean;
  /** Shares of the time of all slots. */
  readonly switchShare: number;
  readonly drainShare: number;
  readonly gpus: number;
  readonly creditsPerGpuHour: number;
}

interface ReportedModel {
  readonly model: string;
  readonly requests: number;
  readonly waitP50Seconds: number;
  readonly waitP99Seconds: number;
  readonly firstTokenP99Seconds: number;
  readonly refusedShare: number;
  readonly gaveUp: number;
}

interface ReportedSlot {
  readonly node: string;
  readonly slot: string;
  readonly models: readonly string[];
  /** The share of all waiting time that requests spent in this slot. */
  readonly waitShare: number;
  readonly switchShare: number;
  readonly drainShare: number;
  readonly switchesPerHour: number;
  readonly creditsPerGpuHour: number;
}

export interface Money {
  /** Millicredits for a token of each model, as they were sold. */
  readonly perToken: ReadonlyMap<string, number>;
  /** Of each slot, in the order of the nodes' slots. */
  readonly gpus: readonly number[];
}

/** Shorter waits are those of a place that is nearly always free. */
const waitingFromMs = 1_000;

export function reportOf(simulation: Simulation, measured: Measured, { perToken, gpus }: Money): OwnReport {
  const hours = measured.totalMs / 3_600_000;
  const slots = simulation.nodes.flatMap((node) => node.slots.map((slot) => ({ node: node.name, slot })));
  const waitedMs = slots.reduce((sum, { slot }) => sum + slot.times.waitedMs, 0);
  const credits = slots.map(
    ({ slot }) =>
      [...slot.times.tokens].reduce((sum, [model, tokens]) => sum + tokens * (perToken.get(model) ?? 0), 0) / 1_000,
  );
  const reported = slots.map(({ node, slot }, index): ReportedSlot => {
    const { totalMs, switchMs, drainMs, switches } = measured.slots[index]!;
    return {
      ...{ node, slot: slot.name, models: slot.models },
      ...{ waitShare: waitedMs === 0 ? 0 : slot.times.waitedMs / waitedMs, switchShare: switchMs / totalMs },
      ...{ drainShare: drainMs / totalMs, switchesPerHour: switches / hours },
      creditsPerGpuHour: credits[index]! / (gpus[index]! * hours),
    };
  });
  const mean = (of: (slot: ReportedSlot) => number) =>
    reported.reduce((sum, one) => sum + of(one), 0) / reported.length;
  const [allGpus, allCredits] = [gpus, credits].map((each) => each.reduce((sum, one) => sum + one, 0)) as [
    number,
    number,
  ];
  return {
    models: [...measured.models].map(([model, its]) => ({
      ...{ model, requests: its.requests, gaveUp: its.gaveUp, refusedShare: its.refused / Math.max(1, its.attempts) },
      ...{ waitP50Seconds: its.wait.quantileMs(0.5) / 1_000, waitP99Seconds: its.wait.quantileMs(0.99) / 1_000 },
      firstTokenP99Seconds: its.firstToken.quantileMs(0.99) / 1_000,
    })),
    slots: reported.toSorted((a, b) => b.waitShare - a.waitShare),
    isWaiting: measured.all.wait.quantileMs(0.99) > waitingFromMs,
    switchShare: mean((slot) => slot.switchShare),
    drainShare: mean((slot) => slot.drainShare),
    gpus: allGpus,
    creditsPerGpuHour: allCredits / (allGpus * hours),
  };
}
