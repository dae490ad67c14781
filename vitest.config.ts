import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Tests start thousands of programs: each takes half of the processor time when Node.js keeps what it compiled.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/node");

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;

const usual = { pool: "forks" as const, testTimeout: 180_000, hookTimeout: 180_000 };
const exclude = ["**/node_modules/**", ...(nightly ? [] : ["**/*.nightly.test.ts"])];
const workspaces = ["shared", "router", "node-agent", "benchmarks", "deploy"];

/**
 * Projects per workspace: pure tests stand beside their file below `src` and share their workers; those that start programs
 * stand elsewhere, each file in a worker of its own. `*.nightly.test.ts` run by night only.
 */
export default defineConfig({
  test: {
    // Tests with processes wait more than they work; by night times are compared, and nothing runs beside them.
    maxWorkers: nightly ? 1 : Math.max(2, availableParallelism() - 1),
    projects: workspaces.flatMap((root) => {
      const pure =
        root === "node-agent" ? ["src/**/*.test.ts", "embedded-engine/src/**/*.test.ts"] : ["src/**/*.test.ts"];
      const others = { ...usual, name: root, root, include: ["**/*.test.ts"], exclude: [...exclude, ...pure] };
      const shared = { ...usual, name: `${root}-src`, root, include: pure, exclude, isolate: false };
      return ["benchmarks", "deploy"].includes(root) ? [{ test: others }] : [{ test: others }, { test: shared }];
    }),
  },
});
