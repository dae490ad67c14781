import { defineConfig } from "vitest/config";

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;

/** One project per workspace; pure tests stand beside their file, tests that boot programs stand in `test/`; `*.nightly.test.ts` run by night only. */
export default defineConfig({
  test: {
    projects: ["shared", "router", "node-agent", "benchmarks", "deploy"].map((name) => ({
      test: {
        name,
        root: name,
        include: ["**/*.test.ts"],
        exclude: ["**/node_modules/**", ...(nightly ? [] : ["**/*.nightly.test.ts"])],
        pool: "forks" as const,
        testTimeout: 60_000,
        hookTimeout: 60_000,
      },
    })),
  },
});
