import { defineConfig } from "vitest/config";

/** One project per workspace; pure tests stand beside their file, tests that boot programs stand in `test/`. */
export default defineConfig({
  test: {
    projects: ["shared", "router", "node-agent", "benchmarks"].map((name) => ({
      test: {
        name,
        root: name,
        include: ["src/**/*.test.ts", "test/**/*.test.ts", "sim/**/*.test.ts", "sim-engine/**/*.test.ts"],
        exclude: ["**/*.nightly.test.ts"],
        pool: "forks" as const,
        testTimeout: 60_000,
        hookTimeout: 60_000,
      },
    })),
  },
});
