/** Runs all checks on every engine found on this machine. */
import { expect, test } from "vitest";
import { tryEngine } from "./campaign.ts";
import { findEngines } from "./engine-kinds.ts";

const found = await findEngines();

test.each(found.map((engine) => [engine.name, engine] as const))(
  "%s passes all checks with router and agent, or was not found [B1 C9]",
  async (_, engine) => {
    const onResult = (name: string, result: object) => console.log(`${name}: ${JSON.stringify(result)}`);
    const { results, missing } = await tryEngine(engine, { withLong: true, onResult });
    if (missing !== undefined) console.log(`${engine.name} was not found: ${missing}`);
    expect(results.filter(({ outcome }) => outcome === "fail")).toEqual([]);
  },
  10_800_000,
);
