/** `npm run node-agent`: runs the agent of one host, with the YAML file that `WEICHE_AGENT_CONFIG` names. */
import { join } from "node:path";
import { runProgram } from "@weiche/shared/program/program.ts";
import { loadAgentConfig } from "./config/config.ts";
import { createAgent } from "./context.ts";

const exampleConfig = join(import.meta.dirname, "../../deploy/demo/agent.yaml");

await runProgram("weiche-node-agent", async (stop, service) => {
  const file = process.env["WEICHE_AGENT_CONFIG"] ?? exampleConfig;
  service.status("taking over the engines of an earlier agent");
  const agent = await createAgent(loadAgentConfig(file, process.env), process.env);
  agent.log.info({ listen: agent.listen }, "node-agent listening");
  service.ready(`ready; operations on ${agent.listen.ops}`);
  // Without a handler it would end running answers. A terminal that closes sends it, and operators who expect a reload.
  process.on("SIGHUP", () => agent.log.warn("agent.yaml is read at a start only: restart the agent to apply changes"));
  await stop;
  service.stopping("stopping; running answers end");
  await agent.close({ stopEngines: process.argv.includes("--stop-engines") });
});
