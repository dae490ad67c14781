import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;

/** One project per workspace; pure tests stand beside their file, tests that boot programs stand in `test/`; `*.nightly.test.ts` run by night only. */
export default defineConfig({
  test: {
    // Tests with processes wait more than they work; by night times are compared, and nothing runs beside them.
    maxWorkers: nightly ? 1 : Math.max(2, availableParallelism() - 1),
    projects: ["shared", "router", "node-agent", "benchmarks", "deploy"].map((name) => ({
      test: {
        name,
        root: name,
        include: ["**/*.test.ts"],
        exclude: ["**/node_modules/**", ...(nightly ? [] : ["**/*.nightly.test.ts"])],
        pool: "forks" as const,
        testTimeout: 180_000,
        hookTimeout: 180_000,
      },
    })),
  },
});
