/**
 * Runs each attack for a moment beside good streams. The answers to the attacker show whether the guard works. The
 * nightly test measures speeds.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Arena } from "../starvation/arena.ts";
import { attacks } from "../starvation/attacks.ts";

let arena: Arena;
beforeAll(async () => void (arena = await Arena.open()));
afterAll(() => arena[Symbol.asyncDispose]());

test.each(attacks)("$name: the guard holds, and no good stream is cut [D10]", async (attack) => {
  const outcome = await arena.run([attack], { quietMs: 100, attackMs: 1_500 });
  expect(outcome.mistakes).toEqual([]);
  expect(outcome).toMatchObject({ cut: [], bugs: 0 });
  expect(outcome.attacked.count).toBeGreaterThan(0);
});
