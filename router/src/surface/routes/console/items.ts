/** Makes the live items of the console's nodes and slots pages. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7TimeMs, type RequestId } from "@weiche/shared/ids.ts";
import { instantText } from "../../../db/database.ts";
import type { PastSwitch } from "../../../nodes/node-view.ts";
import type { ConsoleHistory } from "../../contract/console.ts";
import type { Fleet, HandlerDeps } from "../handler-deps.ts";
import type { Items } from "./live-stream.ts";
import { seconds, viewNode } from "../nodes.ts";

export function nodeItems({ details, nowMs }: Fleet): Items {
  return new Map(details().map((detail) => [detail.view.node, viewNode(detail, nowMs())]));
}

/** Returns a function that makes the items. A history stays the same object until the next switch, so it is not sent again. */
export function createSlotItems({ fleet, clock }: HandlerDeps): () => Items {
  const views = new WeakMap<readonly PastSwitch[], { readonly history: ConsoleHistory }>();
  return () => {
    const nowMs = fleet.nowMs();
    const items = new Map<string, object>();
    for (const detail of fleet.details()) {
      const { node } = detail.view;
      items.set(`node ${node}`, { node: viewNode(detail, nowMs) });
      const since = instantText(uuidv7TimeMs(asId<RequestId>(detail.hello.bootId)));
      for (const [slot, past] of detail.histories) {
        let view = views.get(past);
        if (!view) {
          const switches = past.map((one) => viewSwitch(one, nowMs, clock));
          views.set(past, (view = { history: { node, slot, since, switches } }));
        }
        items.set(`history ${node}/${slot}`, view);
      }
    }
    return items;
  };
}

function viewSwitch(past: PastSwitch, nowMs: number, clock: Clock): ConsoleHistory["switches"][number] {
  const { drainMs, stopMs, memoryMs, startMs, probeMs } = past;
  const parts = { drain: drainMs, stop: stopMs, memory: memoryMs, start: startMs, probe: probeMs };
  return {
    endedAt: instantText(Math.round(clock.now() - (nowMs - past.endedAtMs))),
    from: past.fromModel,
    model: past.model,
    failed: past.failed,
    seconds: past.tookMs / 1000,
    parts: Object.fromEntries(Object.entries(parts).map(([part, ms]) => [part, seconds(ms)])),
  };
}
