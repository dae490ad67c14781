/** Runs all checks against each engine found, one after the other. */
import { runCheck, type Check, type CheckResult } from "./check.ts";
import { answers } from "./checks/answers.ts";
import { leaving } from "./checks/leaving.ts";
import { lives } from "./checks/lives.ts";
import { refusals } from "./checks/refusals.ts";
import { secrecy } from "./checks/secrecy.ts";
import { severalModels } from "./checks/several-models.ts";
import { sharing } from "./checks/sharing.ts";
import { structure } from "./checks/structure.ts";
import { switches } from "./checks/switches.ts";
import type { Found, KindName } from "./engine-kinds.ts";
import { Service } from "./service.ts";

const checks: readonly Check[] = [
  ...[...answers, ...structure, ...refusals],
  ...[...leaving, ...sharing, ...switches, ...severalModels, ...lives, ...secrecy],
];

export interface EngineResult {
  readonly engine: KindName;
  readonly version: string;
  /** Why the engine was not tried. Then there are no results. */
  readonly missing?: string;
  readonly results: readonly CheckResult[];
}

interface CampaignOptions {
  readonly withLong: boolean;
  /** A part of a check's name. If undefined, all checks run. */
  readonly only?: string;
  /** Ends the campaign after the running check and keeps the results so far. */
  readonly signal?: AbortSignal;
  readonly onResult?: (engine: KindName, result: CheckResult) => void;
}

export async function tryEngine(found: Found, options: CampaignOptions): Promise<EngineResult> {
  if ("missing" in found) return { engine: found.name, version: "not found", missing: found.missing, results: [] };
  const results: CheckResult[] = [];
  await using service = await Service.start(found);
  for (const check of checks) {
    if (options.signal?.aborted) break;
    // The first check starts the engine.
    if (options.only !== undefined && check !== checks[0] && !check.name.includes(options.only)) continue;
    const result = await runCheck(check, service, options.withLong);
    results.push(result);
    options.onResult?.(found.name, result);
  }
  return { engine: found.name, version: found.version, results };
}
