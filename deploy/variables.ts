/** The environment variables of router, agent, their commands and engines, as CONFIGURE.md lists them. */

interface Variable {
  readonly meaning: string;
  /** What holds where the variable is not set. Absent: people do not set it. */
  readonly absent?: string;
}

const inFile = (key: string) => `\`${key}\` of the file`;

export const variables: Readonly<Record<string, Variable>> = {
  WEICHE_DATA_DIR: {
    meaning:
      "one folder for all files that are kept: the router uses `router/` in it, the agent `agent/`; each holds a lock and an admin socket, and nothing of the other program. Wins over `dataDir`",
    absent: `${inFile("dataDir")}, or \`data\` in the project`,
  },
  WEICHE_CONFIG: {
    meaning: "the router's file; paths inside are relative to it",
    absent: "`deploy/demo/router.yaml`",
  },
  WEICHE_AGENT_CONFIG: {
    meaning: "the agent's file; paths inside are relative to it",
    absent: "`deploy/demo/agent.yaml`",
  },
  WEICHE_API_LISTEN: { meaning: "wins over `listen.api`", absent: inFile("listen.api") },
  WEICHE_PORTAL_LISTEN: { meaning: "wins over `listen.portal`", absent: inFile("listen.portal") },
  WEICHE_CONSOLE_LISTEN: { meaning: "wins over `listen.console`", absent: inFile("listen.console") },
  WEICHE_NODES_LISTEN: {
    meaning: "wins over `listen.nodes`; an agent on the same host takes it for `routers`",
    absent: inFile("listen.nodes"),
  },
  WEICHE_DATA_LISTEN: { meaning: "wins over `listen.data`", absent: inFile("listen.data") },
  WEICHE_OPS_LISTEN: { meaning: "wins over `listen.ops` of the router", absent: inFile("listen.ops") },
  WEICHE_AGENT_OPS_LISTEN: { meaning: "wins over `listen.ops` of the agent", absent: inFile("listen.ops") },
  WEICHE_LOG_LEVEL: { meaning: "`trace` to `fatal`; wins over `logLevel`", absent: inFile("logLevel") },
  WEICHE_PORT: { meaning: "given by the agent to its engines: where to listen; scripts of units read it" },
  WEICHE_MODEL: { meaning: "given by the agent to its engines: the name to serve; scripts of units read it" },
  WEICHE_ENGINE: { meaning: "given by the agent to its engines: a mark by which it finds one that it lost" },
};
