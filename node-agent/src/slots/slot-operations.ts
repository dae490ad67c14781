/** The operations of a slot on its engines. Each reports its phases, and ends in one event. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { describeError } from "@weiche/shared/program/log.ts";
import type { SwitchPhase } from "../engines/engine.ts";
import type { SlotParts } from "./slot-parts.ts";
import type { SlotEvent } from "./slot-state.ts";

export class SlotOperations {
  readonly #parts: SlotParts;
  readonly #dispatch: (event: SlotEvent) => void;
  readonly #onPhase: (epoch: number, phase: SwitchPhase) => void;
  #activation = new AbortController();

  constructor(
    parts: SlotParts,
    dispatch: (event: SlotEvent) => void,
    onPhase: (epoch: number, phase: SwitchPhase) => void,
  ) {
    this.#parts = parts;
    this.#dispatch = dispatch;
    this.#onPhase = onPhase;
  }

  adopt(epoch: number): void {
    const { engines, events, config } = this.#parts;
    engines.readopt().then(
      (found) => {
        events.readopted(config.name, found);
        this.#dispatch({ kind: "adopted", epoch, found });
      },
      (error: unknown) => {
        events.readoptFailed(config.name, describeError(error).error);
        this.#dispatch({ kind: "adoptFailed", epoch });
      },
    );
  }

  start(model: ModelId, epoch: number): void {
    const { engines, events, config } = this.#parts;
    this.#activation = new AbortController();
    engines
      .activate(model, this.#activation.signal, (phase) => this.#onPhase(epoch, phase))
      .then(
        (endpoint) => this.#dispatch({ kind: "started", epoch, endpoint }),
        (error: unknown) => {
          events.startFailed(config.name, model, describeError(error).error);
          this.#dispatch({ kind: "startFailed", epoch });
        },
      );
  }

  /** Ends the start in progress. */
  giveUp(reason: string): void {
    this.#activation.abort(new Error(reason));
  }

  stop(model: ModelId, epoch: number, forGood: boolean): void {
    const { engines, events, config } = this.#parts;
    engines
      .retire(model, (phase) => this.#onPhase(epoch, phase), forGood)
      .then(
        () => this.#dispatch({ kind: "stopped", epoch }),
        (error: unknown) => {
          events.stopFailed(config.name, model, describeError(error).error);
          this.#dispatch({ kind: "stopFailed", epoch });
        },
      );
  }
}
