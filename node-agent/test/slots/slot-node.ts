/** The slots of a node on virtual time, with scripted engines. */
import { ApiError } from "@weiche/shared/errors.ts";
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { Admission } from "../../src/slots/admission.ts";
import type { SlotEvents } from "../../src/slots/slot-events.ts";
import { createSlots } from "../../src/slots/slots.ts";
import { ScriptedEngines } from "./scripted-engines.ts";
import { a, b, c, config, endpoint } from "./slot-play.ts";

export class Node {
  readonly clock = new VirtualClock(0);
  readonly engines = new Map<string, ScriptedEngines>();
  /** Events for the operator, in order. */
  readonly told: (readonly unknown[])[] = [];
  /** Called at each event, while the slot handles another one. */
  onTold: (event: string) => void = () => {};
  readonly slots;

  /** `models`: the engines of each slot. `together`: engines of several models. */
  constructor(
    models: Record<string, readonly ModelId[]> = { s: [a, b, c] },
    together: Record<string, readonly ModelId[]> = {},
  ) {
    const tell =
      (event: string) =>
      (...args: readonly unknown[]) => {
        this.told.push([event, ...args]);
        this.onTold(event);
      };
    const events = new Proxy({} as SlotEvents, { get: (_, event) => tell(String(event)) });
    this.slots = createSlots({
      slots: Object.entries(models).map(([name, hosted]) => ({
        ...config,
        name: asId<SlotName>(name),
        engines: config.engines
          .filter(({ model }) => hosted.includes(model))
          .map((engine) => ({ ...engine, models: together[engine.model] })),
      })),
      engines: ({ name }) => {
        const engines = new ScriptedEngines();
        this.engines.set(name, engines);
        return engines;
      },
      clock: this.clock,
      events,
    });
  }

  get engine(): ScriptedEngines {
    return this.engines.get("s")!;
  }

  /** Creates a node without engines of an earlier agent. */
  static async begun(...given: ConstructorParameters<typeof Node>): Promise<Node> {
    const node = new Node(...given);
    void node.slots.readopt();
    for (const engines of node.engines.values()) engines.adoption!.resolve(undefined);
    await settle();
    return node;
  }

  request(
    model: ModelId,
    options: { slot?: string; signal?: AbortSignal; routerId?: string; answers?: number } = {},
  ): Promise<Admission> {
    const admission = this.slots.admit({
      model,
      account: asId<AccountId>("alone"),
      routerId: options.routerId ?? "r1",
      answers: options.answers ?? 1,
      signal: options.signal ?? new AbortController().signal,
      slot: options.slot === undefined ? undefined : asId<SlotName>(options.slot),
    });
    admission.catch(() => {});
    return admission;
  }

  /** Returns the admission of a request, after its model was activated. */
  async activated(model: ModelId, slot = "s"): Promise<Admission> {
    const admission = this.request(model, { slot });
    this.engines.get(slot)!.activation!.resolve(endpoint);
    return admission;
  }
}

export async function refusal(admission: Promise<Admission>): Promise<string> {
  const error = await admission.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof ApiError ? `${error.kind} ${error.retryAfterSeconds}` : String(error);
}
