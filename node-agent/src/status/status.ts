/** The output of `weiche-agent status --json`. Values that are not measured are left out. */
import type { GpuReading } from "../host/gpu.ts";
import type { HostReading } from "../host/host.ts";
import type { Machine, MachineReading } from "@weiche/shared/machine.ts";
import type { CertificateFile } from "@weiche/shared/program/certificate-expiry.ts";
import type { RouterState } from "../links/router-links.ts";
import { stateWords, type SlotView } from "../slots/slot-view.ts";
import type { EngineFailure } from "../slots/engine-failures.ts";
import type { EngineStatus } from "./engine-status.ts";

export interface AgentStatus {
  readonly node: string;
  readonly version: string;
  readonly maintenance: boolean;
  readonly admitting: boolean;
  readonly slots: readonly SlotStatus[];
  readonly engines: readonly EngineStatus[];
  readonly routers: readonly RouterState[];
  /** Usage records that no router has committed yet. */
  readonly outbox: { readonly records: number; readonly oldestAgeSeconds?: number };
  /** Undefined until the first measurement, 2 s after the start. */
  readonly host?: HostReading;
  /** Undefined on a host that measures no GPUs. */
  readonly gpus?: readonly GpuReading[];
  /** Undefined until the hardware is read, moments after the start. */
  readonly machine?: Machine;
  /** Read every 15 s. Undefined while it cannot be read. */
  readonly reading?: MachineReading;
  /** Certificates of the router links and the operations listener. Empty if both run without TLS. */
  readonly certificates: readonly CertificateFile[];
}

export interface SlotStatus {
  readonly name: string;
  readonly state: string;
  readonly active?: string;
  /** All models that the active engine serves, if there are several. */
  readonly activeModels?: readonly string[];
  readonly next?: string;
  readonly running: number;
  readonly waiting: Readonly<Record<string, number>>;
  readonly oldestRunningSeconds?: number;
  readonly closesInSeconds?: number;
  readonly stateAgeSeconds: number;
  readonly retryInSeconds?: number;
  /** The last failure with the engine's own words, until its engine has run well for ten minutes. */
  readonly failure?: string;
  /** A start or stop in progress. `usualSeconds` is a moving average, undefined before the first switch. */
  readonly switching?: { readonly seconds: number; readonly phase?: string; readonly usualSeconds?: number };
  readonly sleepers: readonly string[];
  readonly sleeperMemoryBytes: Readonly<Record<string, number>>;
}

export function slotStatus(view: SlotView, failure?: EngineFailure): SlotStatus {
  return {
    name: view.name,
    state: stateWords[view.state],
    active: view.activeModel,
    activeModels: view.activeModels,
    next: view.nextModel,
    running: view.running,
    waiting: Object.fromEntries(view.waiters.map(({ model, waiting }) => [model, waiting])),
    oldestRunningSeconds: optionalSeconds(view.oldestRunningMs),
    closesInSeconds: optionalSeconds(view.closesInMs),
    stateAgeSeconds: seconds(view.stateAgeMs),
    retryInSeconds: optionalSeconds(view.retryInMs),
    failure: failure && [failure.model, failure.reason].filter((part) => part !== undefined).join(": "),
    switching: view.switching && switchStatus(view.switching),
    sleepers: view.sleepers.map(({ model }) => model),
    sleeperMemoryBytes: Object.fromEntries(
      view.sleepers.flatMap(({ model, keptBytes }) => (keptBytes === undefined ? [] : [[model, keptBytes]])),
    ),
  };
}

function switchStatus({ ageMs, phase, usualMs }: NonNullable<SlotView["switching"]>): SlotStatus["switching"] {
  return { seconds: seconds(ageMs), phase, usualSeconds: optionalSeconds(usualMs) };
}

function optionalSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : seconds(ms);
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
