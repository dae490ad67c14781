/** Decides how the end of an attempt counts for its node, and whether another node may be asked. */
import { ApiError, apiErrors } from "@weiche/shared/errors.ts";
import { nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";
import type { AttemptEnd } from "../nodes/outcomes/outcomes.ts";
import { NodeLost, type AnswerBody, type UpstreamResponse } from "../nodes/upstream.ts";
import type { Exchange } from "./exchange.ts";
import type { NodeRefusal } from "./node-refusal.ts";

/** A second node is asked if the first one was lost, failed or was busy before the first byte. */
export const attemptsMax = 2;

/** Reports the end of an attempt. Later calls are ignored. */
export type AttemptEnded = (end: AttemptEnd | "overloaded") => void;

export const failed = { outcome: "failed" } as const;
export const untold = { outcome: "untold" } as const;

/**
 * Returns whether another node may be asked after a refusal: after a 503, after a fault of the node or its engine, or
 * after a refusal of the engine itself. Returns false after the engine died or hung, because the request may do the same
 * to the next engine.
 */
export function mayAskAnother(
  { status }: Pick<NodeRefusal, "status">,
  { nodeFault }: Pick<AnswerBody, "nodeFault">,
): boolean {
  return status === 503 || nodeFault === "node-failed" || nodeFault === "engine-refused";
}

/**
 * Returns the refusal for the client after two attempts. If the first engine refused the request, its refusal names the
 * cause, while a second node that is busy or fails does not. A mistake in the request that the second node found stays.
 */
export function clearerRefusal(first: NodeRefusal | undefined, second: NodeRefusal): NodeRefusal {
  const isMistake = second.status < 500 && !second.isOfEngine;
  return first?.isOfEngine && !isMistake ? first : second;
}

export function endOfRefusal(
  refusal: Pick<NodeRefusal, "body">,
  body: Pick<AnswerBody, "nodeFault" | "engineDeath">,
): AttemptEnd | "overloaded" {
  if (body.nodeFault === "node-busy") return untold;
  if (body.nodeFault ?? body.engineDeath) return failed;
  const { code } = refusal.body.error;
  if (code === apiErrors.model_unavailable.code) return failed;
  return code === apiErrors.overloaded.code ? "overloaded" : untold;
}

/** Returns the end of an attempt without an answer. If the client left or time ran out, it does not count for the node. */
export function endOfError(error: unknown, { signal, isCutByUs }: Exchange): AttemptEnd {
  const isOfNode = error instanceof NodeLost || error instanceof ApiError;
  return isOfNode && !signal.aborted && !isCutByUs ? failed : untold;
}

/** Returns the end of an attempt whose answer began. Call it when the exchange is settled. */
export function endOfAnswer(
  { outcome, isCutByUs, startedAtMs, firstByteAtMs }: Exchange,
  { kind, body, waited }: UpstreamResponse,
  sentMs: number,
  path: NodePath,
): AttemptEnd {
  if (body.nodeFault ?? body.engineDeath) return failed;
  if (outcome === "broken" && body.ending === "broken" && !isCutByUs) return failed;
  if (outcome !== "answered") return untold;
  // The time of a JSON answer depends on its length, so it is not compared. Embeddings have no such differences.
  const isTimed = kind === "events" || path === nodePaths.embeddings;
  const waitedMs = Number(waited?.split(" ")[1] ?? 0);
  const firstByteMs = firstByteAtMs! - startedAtMs - sentMs - waitedMs;
  return { outcome: "served", firstByteMs: isTimed ? firstByteMs : undefined };
}
