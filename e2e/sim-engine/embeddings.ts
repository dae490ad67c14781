/** Answers embeddings with vectors derived from the text, so that a text has the same vector in every engine. */
import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { createRandom } from "@weiche/shared/random.ts";
import type { EngineParts } from "./parts.ts";
import { refuse, replyWrong } from "./reply.ts";
import { inputTokens, isTokenList, parseSteering, text, type Body } from "./request.ts";
import { reply } from "./sink.ts";

export function serveEmbeddings(parts: EngineParts, id: string, body: Body, response: ServerResponse): void {
  const { core, dialect, facts, faults, ledger } = parts;
  const inputs: unknown[] = isTokenList(body["input"]) ? [body["input"]] : [body["input"]].flat();
  const steering = parseSteering(text(inputs[0]), true);
  const counts = inputs.map(inputTokens);
  const tokens = counts.reduce((sum, count) => sum + count, 0);
  const refusal = dialect.checkInputs(body, counts, facts.contextTokens);
  if (refusal) return refuse(response, refusal);
  const fault = steering.fault ?? faults.take("request", Infinity);
  if (fault && replyWrong(fault, parts, false, response)) return;
  if (fault?.kind === "crash") return parts.crash();
  if (fault?.kind === "reset" || fault?.kind === "cut") return void response.socket?.resetAndDestroy();
  const opened = { id, path: "/v1/embeddings", prompt_tokens: tokens, fault: fault?.kind, mark: steering.mark };
  const entry = ledger.open(opened, body);
  const isPacked = body["encoding_format"] === "base64";
  const answer = () => {
    const vectors = inputs.map((input) => embed(text(input), facts.embeddingDimensions));
    const data = vectors.map((vector, index) => {
      return { index, object: "embedding", embedding: isPacked ? toBase64(vector) : vector };
    });
    return dialect.embeddings(data, tokens, { id, model: facts.model, body });
  };
  const work = {
    begin: () => void core.delay(steering.ttftMs ?? facts.ttftMs).then(() => fault?.kind === "hang" || work.abort()),
    /** Does nothing, because an embedding is made at once. */
    abort: () => {
      if (entry.closedAtMs === undefined) reply(response, 200, answer());
      ledger.close(entry, "finished", "stop");
      core.leave(work);
    },
    fail: () => {
      if (entry.closedAtMs === undefined) refuse(response, dialect.refusals.dead);
      ledger.close(entry, "aborted");
      core.leave(work);
    },
  };
  response.once("close", () => {
    ledger.close(entry, "aborted");
    core.leave(work);
  });
  core.submit(work);
}

/** Returns a vector of length 1. */
function embed(input: string, dimensions: number): number[] {
  const random = createRandom(hash("sha256", input, "buffer").readUInt32LE());
  const vector = Array.from({ length: dimensions }, () => random.next() * 2 - 1);
  const norm = Math.hypot(...vector);
  return vector.map((value) => Math.fround(value / norm));
}

function toBase64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}
