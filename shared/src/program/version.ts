/** The version of Weiche, from the project's package.json. A release contains it as a constant. */
import { Gauge, type Registry } from "prom-client";
import project from "../../../package.json" with { type: "json" };

export const version: string = project.version;

/** `weiche_build_info`: always 1. Its labels are the versions of Weiche and of Node.js. */
export function registerBuildInfo(registry: Registry): void {
  const gauge = new Gauge({
    name: "weiche_build_info",
    help: "Always 1, with the versions of Weiche and Node.js as labels",
    labelNames: ["version", "nodejs"],
    registers: [registry],
  });
  gauge.set({ version, nodejs: process.versions.node }, 1);
}
