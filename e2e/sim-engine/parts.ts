/** The parts that the routes of one simulated engine share. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { SimDialect } from "./answer.ts";
import type { EngineCore } from "./core.ts";
import type { EngineFacts } from "./engine-facts.ts";
import type { Faults } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import type { TimerWheel } from "./timer-wheel.ts";

export interface EngineParts {
  readonly facts: EngineFacts;
  readonly dialect: SimDialect;
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly core: EngineCore;
  readonly faults: Faults;
  readonly ledger: Ledger;
  readonly loaded: () => boolean;
  readonly crash: () => void;
  /** Prints a line on the engine's standard error. */
  readonly print: (line: string) => void;
  readonly coreDies: () => void;
  readonly coreIsDead: () => boolean;
}
