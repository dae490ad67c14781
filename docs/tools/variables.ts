/** The environment variables of router, agent, their commands and engines, for configuration.md. */

interface Variable {
  readonly meaning: string;
  /** What applies if the variable is not set. Undefined if people do not set it. */
  readonly absent?: string;
}

const inFile = (key: string) => `\`${key}\` of the file`;

export const variables: Readonly<Record<string, Variable>> = {
  WEICHE_DATA_DIR: {
    meaning:
      "the folder for all persistent files. The router uses `router/` in it, the agent `agent/`, each with its lock and admin socket. Overrides `dataDir`",
    absent: `${inFile("dataDir")}, or \`data\` in the project`,
  },
  WEICHE_CONFIG: {
    meaning: "the router's configuration file. Paths in it are relative to its folder",
    absent: "`deploy/demo/router.yaml`",
  },
  WEICHE_AGENT_CONFIG: {
    meaning: "the agent's configuration file. Paths in it are relative to its folder",
    absent: "`deploy/demo/agent.yaml`",
  },
  WEICHE_API_LISTEN: { meaning: "overrides `listen.api`", absent: inFile("listen.api") },
  WEICHE_PORTAL_LISTEN: { meaning: "overrides `listen.portal`", absent: inFile("listen.portal") },
  WEICHE_CONSOLE_LISTEN: { meaning: "overrides `listen.console`", absent: inFile("listen.console") },
  WEICHE_NODES_LISTEN: {
    meaning: "overrides `listen.nodes`. An agent without `routers` dials this address",
    absent: inFile("listen.nodes"),
  },
  WEICHE_DATA_LISTEN: { meaning: "overrides `listen.data`", absent: inFile("listen.data") },
  WEICHE_OPS_LISTEN: { meaning: "overrides `listen.ops` of the router", absent: inFile("listen.ops") },
  WEICHE_AGENT_OPS_LISTEN: { meaning: "overrides `listen.ops` of the agent", absent: inFile("listen.ops") },
  WEICHE_LOG_LEVEL: { meaning: "`trace` to `fatal`. Overrides `logLevel`", absent: inFile("logLevel") },
  WEICHE_PORT: { meaning: "the port for an engine to listen on. The agent sets it, and scripts of units read it" },
  WEICHE_MODEL: { meaning: "the model name for an engine to serve. The agent sets it, and scripts of units read it" },
  WEICHE_ENGINE: {
    meaning: "a mark on an engine's processes, by which the agent finds an engine that it lost. The agent sets it",
  },
};
