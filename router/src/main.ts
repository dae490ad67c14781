/** `npm run router`: one router, with the YAML file that `WEICHE_CONFIG` names. */
import { join } from "node:path";
import { runProgram } from "@weiche/shared/program.ts";
import { loadRouterConfig } from "./config.ts";
import { createRouter } from "./context.ts";

const exampleConfig = join(import.meta.dirname, "../../deploy/demo/router.yaml");

await runProgram("weiche-router", async (stop) => {
  const file = process.env["WEICHE_CONFIG"] ?? exampleConfig;
  const router = await createRouter(loadRouterConfig(file, process.env));
  router.log.info({ listen: router.listen }, "router listening");
  process.on("SIGHUP", () => router.reloadCatalogue());
  await stop;
  await router.close();
});
