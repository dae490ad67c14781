/** How END frames report failures. README.md explains each. */
import type { EngineDeath, NodeFault } from "../node-protocol.ts";
import { ends } from "./frame.ts";

/** The code of the END frame by which an agent reports each failure. */
const failureEnds = {
  ...{ alone: ends.engineDiedAlone, shared: ends.engineDiedShared },
  ...{ "node-failed": ends.nodeFailed, "engine-lost": ends.engineLost, "node-busy": ends.nodeBusy },
  ...{ "engine-refused": ends.engineRefused, "engine-away": ends.engineAway },
} as const satisfies Record<EngineDeath | NodeFault, number>;

const failures = new Map<number, EngineDeath | NodeFault>(
  (Object.keys(failureEnds) as (EngineDeath | NodeFault)[]).map((failure) => [failureEnds[failure], failure]),
);

/** Returns the code that reports a failure. Undefined for a reason that is no failure of the engine or the node. */
export function failureEnd(reason: string | undefined): number | undefined {
  return reason !== undefined && Object.hasOwn(failureEnds, reason) ? failureEnds[reason as NodeFault] : undefined;
}

/** Returns the failure that the code of an END frame reports. */
export function failureOf(code: number): { readonly death?: EngineDeath; readonly fault?: NodeFault } {
  const failure = failures.get(code);
  return failure === "alone" || failure === "shared" ? { death: failure } : { fault: failure };
}
