/** Which Weiche this is. The one source is the project's package.json; a release has it built in. */
import { Gauge, type Registry } from "prom-client";
import project from "../../../package.json" with { type: "json" };

export const version: string = project.version;

/** `weiche_build_info`: always 1. Its labels are the versions of Weiche and of Node.js. */
export function registerBuildInfo(registry: Registry): void {
  const gauge = new Gauge({
    name: "weiche_build_info",
    help: "1, with the versions of Weiche and of Node.js",
    labelNames: ["version", "nodejs"],
    registers: [registry],
  });
  gauge.set({ version, nodejs: process.versions.node }, 1);
}
