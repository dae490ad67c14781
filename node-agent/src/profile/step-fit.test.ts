import { expect, test } from "vitest";
import { fitStep, type StepPoint } from "./step-fit.ts";

const point = (running: number, contextTokens: number, stepMs: number): StepPoint => ({
  running,
  contextTokens,
  stepMs,
});
const points = (step: (running: number, thousands: number) => number) =>
  [1, 4, 16, 64].flatMap((running) =>
    [200, 2_000].map((tokens) => point(running, running * tokens, step(running, (running * tokens) / 1_000))),
  );

test("the three parts of a step are found from four loads with two lengths of prompts", () => {
  const { baseMs, perRunningMs, perThousandTokensMs } = fitStep(
    points((running, thousands) => 18 + 0.3 * running + 0.05 * thousands),
  );
  expect(baseMs).toBeCloseTo(18, 6);
  expect(perRunningMs).toBeCloseTo(0.3, 6);
  expect(perThousandTokensMs).toBeCloseTo(0.05, 6);
});

test("errors of a twentieth change the time of a step by less than a twentieth", () => {
  const noise = [1.05, 0.96, 1.02, 0.95, 1.04, 0.97, 1.01, 0.99];
  const exact = points((running, thousands) => 18 + 0.3 * running + 0.05 * thousands);
  const fit = fitStep(exact.map((each, index) => ({ ...each, stepMs: each.stepMs * noise[index]! })));
  for (const { running, contextTokens, stepMs } of exact) {
    const said = fit.baseMs + fit.perRunningMs * running + (fit.perThousandTokensMs * contextTokens) / 1_000;
    expect(Math.abs(said / stepMs - 1)).toBeLessThan(0.05);
  }
});

test("no part is negative, and points that cannot tell the parts apart give the first ones", () => {
  expect(fitStep(points((running) => 20 - 0.1 * running))).toMatchObject({ perRunningMs: 0, perThousandTokensMs: 0 });
  expect(fitStep([point(1, 100, 12)])).toEqual({ baseMs: 12, perRunningMs: 0, perThousandTokensMs: 0 });
});
