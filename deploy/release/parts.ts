/** The parts of a release, with their programs, and the files of the checkout that they read at run time. */
import type { Part } from "./bundle.ts";

export interface ReleasePart extends Part {
  /** The workspace whose packages the part needs. */
  readonly workspace: string;
  /** Folders and files that have the same path in the tree as in the checkout. */
  readonly files: readonly string[];
  /** Commands in `bin`, with their programs and their defaults for unset variables. */
  readonly commands: Readonly<
    Record<string, { readonly program: string; readonly defaults: Readonly<Record<string, string>> }>
  >;
}

const dataDir = { WEICHE_DATA_DIR: "/var/lib/weiche" };

export const parts = {
  router: {
    folder: "router",
    workspace: "router",
    programs: {
      "weiche-router": "router/src/main.ts",
      weiche: "deploy/release/weiche-command.ts",
    },
    external: [],
    files: ["router/migrations", "router/portal-web/built", "router/portal-web/built-console"],
    commands: {
      weiche: { program: "weiche", defaults: dataDir },
      "weiche-router": { program: "weiche-router", defaults: { ...dataDir, WEICHE_CONFIG: "/etc/weiche/router.yaml" } },
    },
  },
  "node-agent": {
    folder: "node-agent",
    workspace: "node-agent",
    programs: {
      "weiche-node-agent": "node-agent/src/main.ts",
      "weiche-agent": "node-agent/src/status/cli.ts",
    },
    external: [],
    files: [],
    commands: {
      "weiche-agent": { program: "weiche-agent", defaults: dataDir },
      "weiche-node-agent": {
        program: "weiche-node-agent",
        defaults: { ...dataDir, WEICHE_AGENT_CONFIG: "/etc/weiche/agent.yaml" },
      },
    },
  },
  "embedded-engine": {
    folder: "embedded-engine",
    workspace: "node-agent/embedded-engine",
    programs: { "embedded-engine": "node-agent/embedded-engine/src/main.ts" },
    external: ["node-llama-cpp"],
    files: [],
    commands: { "weiche-embedded-engine": { program: "embedded-engine", defaults: {} } },
  },
} as const satisfies Readonly<Record<string, ReleasePart>>;

export type PartName = keyof typeof parts;
