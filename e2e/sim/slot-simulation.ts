/**
 * Runs one seed: a slot under a load with faults and restarts that the seed determines. In the safety phase things
 * fail, and no rule may be broken. In the liveness phase everything is healed, every model must be served, and all work
 * must end.
 */
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { asId, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import type { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { noFaults, type SimFaults, type SimTimes } from "./sim-host.ts";
import { SlotWorld, type Visit, type WorldOptions } from "./slot-world.ts";

interface SimulationResult {
  /** The broken rule and its time. */
  readonly broken: string | undefined;
  readonly admitted: number;
  readonly refused: number;
  readonly left: number;
  readonly activations: number;
}

/** The order of the requests for the models. */
type Load = "constant" | "alternating" | "mixed" | "bursts";

interface Plan extends Omit<WorldOptions, "seed" | "transition"> {
  readonly load: Load;
  readonly gapMs: number;
  readonly visits: number;
  readonly accounts: number;
  readonly shortRunMs: number;
  readonly restarts: number;
  readonly disturbances: number;
}

/** All within the limits of the plans, so that only faults take longer. */
const times: SimTimes = {
  startMs: [500, 9_000],
  wakeMs: [100, 3_000],
  stopMs: [50, 2_000],
  probeMs: [10, 900],
  newsMs: [0, 300],
  crashMs: [1, 25_000],
  lateMs: [0, 40_000],
};

/** Duration of the final requests, which show that everything works. */
const lastRunMs = 10;

export async function simulate(seed: number, behaviour?: () => typeof transition): Promise<SimulationResult> {
  const random = createRandom(seed);
  const plan = makePlan(random);
  const world = new SlotWorld({ ...plan, seed, transition: behaviour });
  const began = world.clock.monotonicMs();
  const wrong = (await goWrong(world, plan, random)) ?? (await getWell(world, plan));
  const at = `after ${world.clock.monotonicMs() - began} ms (${plan.load} load)`;
  const broken = wrong && `${wrong}, ${at}`;
  return { broken, ...world.answers, activations: world.host.activations };
}

function makePlan(random: Random): Plan {
  const names = ["a", "b", "c", "d"].slice(0, 2 + random.below(3));
  const some = (chance: number, most: number) => (random.chance(chance) ? random.next() * most : 0);
  const calm = random.chance(0.3);
  const faults: SimFaults = {
    startFails: some(0.4, 0.6),
    startHangs: some(0.2, 0.3),
    startIgnoresGiveUp: some(0.5, 0.5),
    startComesUpLate: some(0.3, 0.5),
    stopFails: some(0.2, 0.4),
    stopHangs: some(0.2, 0.4),
    readoptFails: some(0.3, 0.6),
    readoptHangs: some(0.2, 0.4),
    crashes: some(0.6, 0.8),
  };
  const load = random.pick<Load>(["constant", "alternating", "mixed", "bursts"]);
  return {
    models: new Map(
      names.map((name) => [
        asId<ModelId>(name),
        { sleeps: random.chance(0.5), places: 1 + random.below(10), saysPlaces: random.chance(0.5) },
      ]),
    ),
    limits: {
      minResidencyMs: random.pick([0, 2_000, 5_000, 15_000]),
      drainOpenMsMax: random.pick([3_000, 10_000, 10_000]),
      waitersMax: 2 + random.below(12),
      waiterMsMax: random.pick([30_000, 60_000, 300_000]),
      backoffMsMin: 2_000,
      backoffMsMax: random.pick([8_000, 30_000]),
      startMsMax: random.pick([10_000, 60_000]),
      stopMsMax: random.pick([2_500, 10_000]),
      whileSwitching: random.chance(0.7) ? "hold" : "refuse",
    },
    times,
    faults: calm ? noFaults : faults,
    load,
    gapMs: random.pick([100, 400, 1_500, 5_000]),
    visits: 30 + random.below(70),
    accounts: 1 + random.below(5),
    shortRunMs: random.pick([200, 1_000, 5_000]),
    longestRunMs: random.pick([5_000, 25_000]),
    restarts: random.chance(0.3) ? 1 + random.below(2) : 0,
    disturbances: random.below(4),
  };
}

/** The safety phase. */
async function goWrong(world: SlotWorld, plan: Plan, random: Random): Promise<string | undefined> {
  const { clock } = world;
  const models = [...plan.models.keys()];
  const endMs = clock.monotonicMs() + plan.gapMs * plan.visits;
  let count = 0;
  const next = () => {
    world.visit(makeVisit(plan, models, count, random));
    const pause = plan.load === "bursts" ? (count % 8 === 0 ? plan.gapMs * 8 : 1) : random.below(2 * plan.gapMs);
    if (++count < plan.visits && clock.monotonicMs() + pause < endMs) clock.after(pause, next);
  };
  clock.after(0, next);
  const sometime = () => random.below(endMs - clock.monotonicMs() + 1);
  for (let restart = 0; restart < plan.restarts; restart++)
    clock.after(sometime(), random.chance(0.7) ? () => world.killAgent() : () => world.closeAgent());
  for (let disturbance = 0; disturbance < plan.disturbances; disturbance++)
    clock.after(sometime(), () => disturb(world, models, random));
  await world.advanceTo(endMs);
  return world.rules.broken;
}

function makeVisit(plan: Plan, models: readonly ModelId[], count: number, random: Random): Visit {
  const model = {
    constant: () => (random.chance(0.92) ? models[0]! : random.pick(models)),
    alternating: () => models[count % models.length]!,
    mixed: () => random.pick(models),
    bursts: () => models[Math.floor(count / 8) % models.length]!,
  }[plan.load]();
  const long = random.chance(0.1);
  return {
    model,
    account: asId<AccountId>(`account-${random.below(plan.accounts)}`),
    runMs: 1 + random.below(long ? plan.longestRunMs : Math.min(plan.shortRunMs, plan.longestRunMs)),
    ...(random.chance(0.1) && { leftMs: random.pick([200, 60_000]) }),
    answers: random.chance(0.2) ? 2 + random.below(4) : 1,
    patienceMs: random.chance(0.25) ? random.below(15_000) : undefined,
    releasesTwice: random.chance(0.1),
    suspects: random.chance(0.02),
  };
}

function disturb(world: SlotWorld, models: readonly ModelId[], random: Random): void {
  switch (random.below(3)) {
    case 0:
      world.setMaintenance(true);
      world.clock.after(random.below(20_000), () => world.setMaintenance(false));
      return;
    case 1:
      return world.prewarm(random.pick(models));
    default:
      return world.clock.jumpWall(random.below(7_200_000) - 3_600_000);
  }
}

/** The liveness phase. */
async function getWell(world: SlotWorld, plan: Plan): Promise<string | undefined> {
  const { clock, host, rules } = world;
  const { limits } = plan;
  host.heal();
  world.agent.engines.heal();
  world.setMaintenance(false);
  const restMs =
    plan.longestRunMs + limits.waiterMsMax + limits.backoffMsMax + limits.startMsMax + 3 * limits.stopMsMax;
  if (!(await world.advanceTo(clock.monotonicMs() + restMs))) return rules.broken;
  if (rules.waiting.size + rules.running.size > 0) return "requests are left over";
  const switchMs = Math.max(limits.minResidencyMs, 0) + times.startMs[1] + times.stopMs[1];
  for (const model of plan.models.keys()) {
    const admitted = world.answers.admitted;
    world.visit({ model, runMs: lastRunMs });
    if (!(await world.advanceTo(clock.monotonicMs() + switchMs))) return rules.broken;
    if (world.answers.admitted !== admitted + 1) return `${model} is not served although everything is healed`;
  }
  if (!(await world.advanceTo(clock.monotonicMs() + limits.minResidencyMs + lastRunMs))) return rules.broken;
  if (rules.running.size > 0) return "a request does not end";
  if (world.agent.clock.pending > 0) return "a timer is left over";
  await world.agent.slots.close({ stopEngines: true, deadlineMs: 0 });
  return host.occupants.length > 0 ? "an engine is left over" : undefined;
}
