/** Gives the work of a request access to its engine and its client. */
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import type { Dialect } from "../engines/dialects/dialect.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import type { CachePrompts, DialectName } from "../engines/engine.ts";
import type { CutTexts } from "../answer/embeddings/cut-texts.ts";
import type { EngineConnections } from "../answer/engine-connections.ts";
import type { EngineAccess } from "../answer/engine-work.ts";
import type { Admission } from "../slots/admission.ts";
import type { EngineDoubts } from "./engine-doubts.ts";
import type { Exchange } from "./exchange.ts";
import type { IngressEvents } from "./ingress-events.ts";
import type { RequestRun } from "./request-run.ts";
import type { RequestHead } from "../intake/request-head.ts";

export interface EngineAccessOptions {
  readonly dialects: Readonly<Record<DialectName, Dialect>>;
  readonly connections: EngineConnections;
  readonly cutTexts: CutTexts;
  readonly doubts: EngineDoubts;
  readonly events: IngressEvents;
}

export function engineAccess(
  admission: Admission,
  { exchange, run }: { readonly exchange: Exchange; readonly run: RequestRun },
  { dialects, connections, cutTexts, doubts, events }: EngineAccessOptions,
): EngineAccess {
  const { engine, endpoint } = admission;
  const dialect = dialects[engine.dialect];
  admission.onEngineLost((death) => {
    if (!run.isGenerated) exchange.endWith(new EngineFault("gone", "gone", death));
  });
  const { requestId, model } = run.head;
  const { signal } = exchange;
  const cacheSalt = cacheSaltOf(engine.cachePrompts, run.head);
  return {
    dialect,
    dialectName: engine.dialect,
    windowTokens: endpoint.windowTokens,
    cuts: dialect.mayCutTexts && endpoint.cutsTexts !== false ? cutTexts.of(endpoint) : undefined,
    cacheSalt,
    showsCached: cacheSalt === undefined || dialect.keepsSaltsApart,
    ask: (path, body, holdsBack = false) =>
      connections.open({
        ...{ endpoint, path, body, requestId, keep: dialect.keepsConnections, signal },
        ...{ silentMsMax: engine.silentMsMax, showsLife: showsLife(dialect, path, holdsBack) },
      }),
    writeEvents: (text) => exchange.writeEvents(text),
    onShortfall: (detail) => events.engineShortfall(requestId, model, admission.slot, detail),
    onUnknownFinish: (reason) => events.unknownFinish(requestId, model, reason),
    onOutput: (chunks) => {
      run.giveRoom();
      if (!run.hasOutput) doubts.output(endpoint);
      run.hasOutput = true;
      run.meter.onOutput(chunks);
    },
  };
}

function showsLife({ showsLife: when }: Dialect, path: string, holdsBack: boolean): boolean {
  return when === "always" || (when === "generating" && path !== nodePaths.embeddings && !holdsBack);
}

/** The salt that keeps the prompts of one account apart in an engine's prefix cache. If undefined, all accounts share it. */
function cacheSaltOf(mode: CachePrompts = "per-account", { billing, requestId }: RequestHead): string | undefined {
  switch (mode) {
    case "per-account":
      return billing.accountId;
    case "off":
      return requestId;
    case "shared":
      return undefined;
  }
}
