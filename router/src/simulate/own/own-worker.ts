/** The thread that simulates the fleet under its own usage, at a lower priority than the threads that serve streams. */
import { parentPort, workerData } from "node:worker_threads";
import { yieldToOthers } from "@weiche/shared/program/thread-priority.ts";
import { Measured } from "../engine/measured.ts";
import { Simulation } from "../engine/simulation.ts";
import type { OwnFleet } from "./own-fleet.ts";
import { reportOf, type Money, type OwnReport } from "./own-report.ts";
import { loadOfHours, type OwnUsage } from "./own-usage.ts";

export interface OwnJob extends Pick<OwnFleet, "nodes" | "retryMs">, Pick<OwnUsage, "hours" | "fromMs" | "toMs"> {
  /** The model that requests for each of the usage's models are for. Undefined if no node serves them. */
  readonly served: readonly (string | undefined)[];
  readonly routers: number;
  readonly money: Money;
}

export type OwnNews = { readonly share: number } | { readonly report: OwnReport };

/** A few times a second. */
const eventsAtOnce = 20_000;

yieldToOthers();

const { nodes, retryMs, hours, fromMs, toMs, served, routers, money } = workerData as OwnJob;
const durationMs = toMs - fromMs;
const simulation = new Simulation({
  ...{ seed: 1, load: loadOfHours(hours, fromMs, served), durationMs, nodes, retryMs, routers },
  ...{ newsMs: 1, isFair: true },
});
while (simulation.advance(eventsAtOnce)) tell({ share: Math.min(1, simulation.clock.monotonicMs() / durationMs) });
simulation.end();
const measured = new Measured();
measured.add(simulation);
tell({ report: reportOf(simulation, measured, money) });

function tell(news: OwnNews): void {
  parentPort!.postMessage(news);
}
