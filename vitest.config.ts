import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Tests start thousands of programs. Node.js takes half of the processor time for each if it keeps what it compiled.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/node");

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;

/**
 * The kinds of tests, by the names of their files. `*.test.ts` alone is a pure test. `npm test` leaves out `e2e` and
 * `browser`.
 */
const kinds = [
  /** One program, or a listener. */
  "process",
  /** A router or its parts on a PostgreSQL. */
  "database",
  /** Clusters of routers, agents and simulated engines. */
  "e2e",
  /** The portal and the console in Chromium. */
  "browser",
  /** Long campaigns of any kind. */
  ...(nightly ? ["nightly"] : []),
];
const ofKind = (kind: string) => ({ name: kind, include: [`**/*.${kind}.test.ts`] });
const unit = { name: "unit", include: ["**/*.test.ts"] };

export default defineConfig({
  test: {
    // Tests with processes wait more than they work; by night times are compared, and nothing runs beside them.
    maxWorkers: nightly ? 1 : Math.max(2, availableParallelism() - 1),
    projects: [unit, ...kinds.map(ofKind)].map((project) => ({
      test: {
        ...{ pool: "forks" as const, testTimeout: 180_000, hookTimeout: 180_000 },
        ...project,
        exclude: ["**/node_modules/**", ...(project === unit ? ["**/*.*.test.ts"] : [])],
        // Pure tests share their workers.
        isolate: project !== unit,
      },
    })),
  },
});
