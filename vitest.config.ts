import { defineConfig } from "vitest/config";

/** One project per workspace; pure tests stand beside their file, tests that boot programs stand in `test/`. */
export default defineConfig({
  test: {
    projects: ["shared", "router", "node-agent", "benchmarks", "deploy"].map((name) => ({
      test: {
        name,
        root: name,
        include: ["**/*.test.ts"],
        exclude: ["**/node_modules/**"],
        pool: "forks" as const,
        testTimeout: 60_000,
        hookTimeout: 60_000,
      },
    })),
  },
});
