/** Latest measurements of host, GPUs and engines, for load reports, metrics and `weiche-agent status`. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineLife } from "../engines/engine-life.ts";
import type { DialectLifecycles, EngineMetrics } from "../engines/dialect-lifecycle.ts";
import type { GpuReader, GpuReading } from "../host/gpu.ts";
import { HostReader, type HostReading } from "../host/host.ts";
import type { AwakeEngine } from "../engines/engine.ts";

export interface TelemetryOptions {
  readonly gpuReader: GpuReader;
  readonly dialects: DialectLifecycles;
  readonly life: EngineLife;
  readonly awake: () => readonly AwakeEngine[];
}

export interface MeasuredEngine {
  readonly slot: SlotName;
  readonly model: ModelId;
  readonly metrics: EngineMetrics;
}

/** Scraping more often would keep llama-server from noticing clients that leave. */
export const measureEveryMs = 2_000;
const engineMsMax = 1_500;

export class Telemetry {
  host: HostReading | undefined;
  gpus: readonly GpuReading[] | undefined;
  engines: ReadonlyMap<SlotName, EngineMetrics> = new Map();
  /** Engine metrics as a list, with slot and model. */
  measured: readonly MeasuredEngine[] = [];
  readonly #options: TelemetryOptions;
  readonly #hostReader = new HostReader();

  constructor(options: TelemetryOptions) {
    this.#options = options;
  }

  async measure(): Promise<void> {
    this.host = this.#hostReader.read();
    const [gpus, engines] = await Promise.all([this.#options.gpuReader.readGpus(), this.#engines()]);
    this.gpus = gpus;
    this.engines = new Map(engines.map(({ slot, metrics }) => [slot, metrics]));
    this.measured = engines;
  }

  async #engines(): Promise<readonly MeasuredEngine[]> {
    const measured: MeasuredEngine[] = [];
    await Promise.all(
      this.#options.awake().map(async ({ slot, spec, endpoint }) => {
        const metrics = await this.#options.dialects[spec.dialect]
          .metrics?.(endpoint, AbortSignal.timeout(engineMsMax))
          .catch(() => undefined);
        if (metrics) measured.push({ slot, model: spec.model, metrics });
        if (metrics?.work !== undefined) this.#options.life.measured(endpoint, metrics.work);
      }),
    );
    return measured;
  }
}
