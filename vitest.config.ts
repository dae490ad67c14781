import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Tests start thousands of programs. Node.js takes half of the processor time for each if it keeps what it compiled.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/node");

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;

/** The kinds of tests, by folder. `npm test` leaves out `e2e` and `browser`. */
const folders = {
  /** Pure tests, beside the file that they test. */
  unit: ["{shared,router,node-agent,node-agent/embedded-engine,router/portal-web}/src"],
  /** A router or its parts on a PostgreSQL. */
  database: ["router/test/!(portal-web)"],
  /** Clusters of routers, agents and simulated engines. */
  e2e: ["benchmarks/{test,load}"],
  /** The portal and the console in Chromium. */
  browser: ["router/test/portal-web"],
};
const within = (paths: readonly string[]) => paths.map((path) => `${path}/**/*.test.ts`);
const kinds: Readonly<Record<string, { readonly include: string[]; readonly exclude: string[] }>> = {
  ...Object.fromEntries(
    Object.entries(folders).map(([kind, paths]) => [kind, { include: within(paths), exclude: [] }]),
  ),
  /** All others: simulations, and tests of one program or of a listener. */
  process: { include: ["**/*.test.ts"], exclude: within(Object.values(folders).flat()) },
};

export default defineConfig({
  test: {
    // Tests with processes wait more than they work; by night times are compared, and nothing runs beside them.
    maxWorkers: nightly ? 1 : Math.max(2, availableParallelism() - 1),
    projects: Object.entries(kinds).map(([name, { include, exclude }]) => ({
      test: {
        ...{ name, include, pool: "forks" as const, testTimeout: 180_000, hookTimeout: 180_000 },
        exclude: ["**/node_modules/**", ...exclude, ...(nightly ? [] : ["**/*.nightly.test.ts"])],
        // Pure tests share their workers.
        isolate: name !== "unit",
      },
    })),
  },
});
