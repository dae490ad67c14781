/** A slot and an outbox in memory, which a test can make slow, full or broken. */
import type { ApiError } from "@weiche/shared/errors.ts";
import { asId, type SlotName } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import type { UsageOutbox } from "../../src/answer/usage-meter.ts";
import type { DialectName, EngineEndpoint, EngineSpec } from "../../src/engines/engine.ts";
import type { Admission, AdmissionRequest, Admissions } from "../../src/slots/admission.ts";
import type { Standing } from "../../src/slots/turn-estimate.ts";
import { EngineLoss } from "../../src/slots/engine-loss.ts";

export type EngineSettings = Pick<EngineSpec, "cachePrompts" | "silentMsMax">;

/** A slot whose engine runs. It counts places, and a test can force it to wait. */
export class SimulatedSlot implements Admissions {
  readonly endpoint: EngineEndpoint;
  readonly dialect: DialectName;
  readonly settings: EngineSettings;
  readonly suspected: string[] = [];
  readonly lost: string[] = [];
  readonly requests: AdmissionRequest[] = [];
  /** Requests wait while this is pending. */
  gate: Promise<void> = Promise.resolve();
  refusal: ApiError | undefined;
  running = 0;
  readonly #loss = new EngineLoss();

  constructor(endpoint: EngineEndpoint, dialect: DialectName, settings: EngineSettings = {}) {
    this.endpoint = endpoint;
    this.dialect = dialect;
    this.settings = settings;
  }

  dialectsOf(): readonly DialectName[] {
    return [this.dialect];
  }

  waiting(): ReadonlyMap<AdmissionRequest, Standing> {
    return new Map();
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const ticket = this.requests.push(request);
    if (this.refusal) throw this.refusal;
    const gone = new Promise<never>((_, reject) =>
      request.signal.addEventListener("abort", () => reject(request.signal.reason as Error), { once: true }),
    );
    await Promise.race([this.gate, gone]);
    request.signal.throwIfAborted();
    this.running++;
    let isHeld = true;
    return {
      slot: asId<SlotName>("a"),
      engine: {
        ...{
          model: request.model,
          dialect: this.dialect,
          launcher: { kind: "external", url: "" },
          maxConcurrent: 1_000,
        },
        cachePrompts: this.settings.cachePrompts,
        silentMsMax: this.settings.silentMsMax,
      },
      endpoint: this.endpoint,
      waitedMs: 0,
      waitedFor: "place",
      onEngineLost: (listener) => this.#loss.listen(ticket, listener),
      release: () => {
        this.#loss.forget(ticket);
        if (isHeld) this.running--;
        isHeld = false;
      },
      suspect: (reason) => this.suspected.push(reason),
      lose: (reason) => {
        this.lost.push(reason);
        this.loseEngine();
      },
    };
  }

  loseEngine(): void {
    this.#loss.tell();
  }
}

/** Keeps records in memory. Its disk can be slow, broken or full. */
export class SimulatedOutbox implements UsageOutbox {
  readonly records: UsageRecord[] = [];
  admitting = true;
  sync: () => Promise<void> = () => Promise.resolve();

  /** Makes the disk slow: `asked` resolves when a record arrives, and `synced.resolve` stores it. */
  hold() {
    const [asked, synced] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.sync = () => {
      asked.resolve();
      return synced.promise;
    };
    return { asked, synced };
  }

  async append(record: UsageRecord): Promise<void> {
    await this.sync();
    this.records.push(record);
  }
}
