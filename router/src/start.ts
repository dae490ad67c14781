/** Starts one router (`npm run router`) with the YAML file that `WEICHE_CONFIG` names. */
import { join } from "node:path";
import { runProgram } from "@weiche/shared/program/program.ts";
import { loadRouterConfig } from "./config/config.ts";
import { createRouter } from "./context.ts";

const exampleConfig = join(import.meta.dirname, "../../deploy/demo/router.yaml");

await runProgram("weiche-router", async (stop, service) => {
  const file = process.env["WEICHE_CONFIG"] ?? exampleConfig;
  const router = await createRouter(loadRouterConfig(file, process.env));
  router.log.info({ listen: router.listen }, "router listening");
  service.ready(`ready; API on ${router.listen.api}`);
  process.on("SIGHUP", () => void router.reloadCatalogue());
  await stop;
  service.stopping("stopping; running answers end");
  await router.close();
});
