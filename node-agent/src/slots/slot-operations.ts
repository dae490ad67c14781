/** The operations of a slot on its engines. Each reports its phases and ends with one event. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { describeError } from "@weiche/shared/program/log.ts";
import type { SwitchPhase } from "../engines/engine.ts";
import type { SlotOptions } from "./slot-options.ts";
import type { SlotEvent } from "./slot-state.ts";

export function slotOperations(
  { engines, events, config }: SlotOptions,
  dispatch: (event: SlotEvent) => void,
  onPhase: (epoch: number, phase: SwitchPhase) => void,
) {
  let activation = new AbortController();
  return {
    adopt(epoch: number): void {
      engines.readopt().then(
        (found) => {
          events.readopted(config.name, found);
          dispatch({ kind: "adopted", epoch, found });
        },
        (error: unknown) => {
          events.readoptFailed(config.name, describeError(error).error);
          dispatch({ kind: "adoptFailed", epoch });
        },
      );
    },

    start(model: ModelId, epoch: number): void {
      activation = new AbortController();
      engines
        .activate(model, activation.signal, (phase) => onPhase(epoch, phase))
        .then(
          (endpoint) => dispatch({ kind: "started", epoch, endpoint }),
          (error: unknown) => {
            events.startFailed(config.name, model, describeError(error).error);
            dispatch({ kind: "startFailed", epoch });
          },
        );
    },

    /** Ends the current attempt to start. */
    giveUp(reason: string): void {
      activation.abort(new Error(reason));
    },

    stop(model: ModelId, epoch: number, forGood: boolean): void {
      engines
        .retire(model, (phase) => onPhase(epoch, phase), forGood)
        .then(
          () => dispatch({ kind: "stopped", epoch }),
          (error: unknown) => {
            events.stopFailed(config.name, model, describeError(error).error);
            dispatch({ kind: "stopFailed", epoch });
          },
        );
    },
  };
}
