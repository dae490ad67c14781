import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests start thousands of programs. Node.js takes half of the processor time for each if it keeps compiled code.
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
const ofKind = (kind: string) => ({
  name: kind,
  include: [`**/*.${kind}.test.ts`],
  globalSetup: ["database", "browser", "nightly"].includes(kind) ? "router/test/db/run-server.ts" : [],
});
const unit = { name: "unit", include: ["**/*.test.ts"] };

/** Files that take more than 40 seconds. */
const longest =
  /\b(agent-kills|pages|drains|starvation|people|journeys|client-sdks|demonstration|dashboards|two-agents|endings|rolling-restart)\./;

/** Starts the longest files first. Otherwise one of them would be the last, and most workers would wait for it. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longest.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    // Tests with processes wait half of their time. Nightly tests compare times, so nothing runs beside them.
    maxWorkers: nightly ? 1 : availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    projects: [unit, ...kinds.map(ofKind)].map((project) => ({
      test: {
        ...{ pool: "forks" as const, testTimeout: 180_000, hookTimeout: 180_000 },
        ...project,
        exclude: ["**/node_modules/**", ...(project === unit ? ["**/*.*.test.ts"] : [])],
        // The default is one second. On a busy machine, a second is not a sign of a hang.
        expect: { poll: { timeout: 10_000 } },
        // The files of a worker share their imports. By night each has a worker of its own.
        isolate: nightly,
      },
    })),
  },
});
