/** Policies by which a slot shares its time among models: the current one and the previous one. */
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { turnFromWaiter } from "../breakages.ts";
import { usualLimits } from "../slot-world.ts";

interface Policy {
  readonly limits: SlotLimits;
  readonly transition: () => typeof transition;
}

/** The defaults of an `agent.yaml`. */
const limits: SlotLimits = { ...usualLimits, startMsMax: 900_000, stopMsMax: 120_000 };

export const policies = {
  /**
   * Until decision 48: a drain closed ten seconds after the first waiter and refused later requests. A model kept its slot
   * for five seconds.
   */
  before: { limits: { ...limits, minResidencyMs: 5_000, whileSwitching: "refuse" }, transition: turnFromWaiter },
  now: { limits, transition: () => transition },
} satisfies Readonly<Record<string, Policy>>;

export type PolicyName = keyof typeof policies;
