/** Explains in sentences what happened to one request. */
import { counted } from "@weiche/shared/program/amounts.ts";
import { formatTable } from "@weiche/shared/program/table.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import { wrapped } from "../cli-text.ts";
import type { Answer } from "../client.ts";
import { failureText } from "../node-tables.ts";
import { whatHelps } from "./what-helps.ts";
import { inWords } from "@weiche/shared/program/duration.ts";

type Explained = Answer<"explainRequest">;
type Running = NonNullable<Explained["running"]>;
type Ended = NonNullable<Explained["ended"]>;

/** A line has at most 80 characters unless an id or a name is longer. */
export function explainText(explained: Explained): string {
  const { id, acceptedAt, running, ended, usage, unanswered } = explained;
  const request = running ?? ended;
  const first = usage?.[0] ?? unanswered;
  const accountId = request?.accountId ?? first?.accountId;
  const keyId = request?.keyId ?? first?.keyId;
  const head = [
    ["request", id],
    ["accepted", acceptedAt],
    ...(request ? [["for", `${request.endpoint}${request.model ? `, ${request.model}` : ""}`]] : []),
    ...(!request && first?.model ? [["for", first.model]] : []),
    ...(accountId ? [["account", accountId]] : []),
    ...(keyId ? [["key", keyId]] : []),
  ];
  return [
    ...head.map(([name, value]) => `${name!.padEnd(9)} ${plainText(value!)}`),
    "",
    ...(request ? attemptsOf(request.tried) : forgottenOf(explained)).map((line) => wrapped(line, "  ")),
    ...(running ? [nowOf(running)] : ended ? endOf(ended) : storedEndOf(unanswered)).map((line) => wrapped(line)),
    ...failuresOf(explained).map((line) => wrapped(line, "  ")),
    "",
    ...costOf(explained),
  ].join("\n");
}

/** Failures of the model's engines explain a request that did not get its whole answer. */
function failuresOf({ ended, failures }: Explained): string[] {
  if (ended && ["answered", "client-gone", "stalled"].includes(ended.outcome)) return [];
  return failures.map(({ node, slot, failure }) => plainText(`${node}/${slot}: ${failureText(failure)}.`));
}

function attemptsOf(tried: Ended["tried"]): string[] {
  return tried.length === 0 ? ["It was not sent to any node."] : tried.flatMap(attemptOf);
}

function attemptOf(attempt: Ended["tried"][number], index: number): string[] {
  const { node, slot, sentAfterSeconds, repliedAfterSeconds, result, waitedFor, waitedSeconds, estimatedSeconds } =
    attempt;
  const place = plainText(slot === undefined ? node : `${node}, slot ${slot}`);
  const lines = [`Attempt ${index + 1}: sent to ${place} after ${inWords(sentAfterSeconds)}.`];
  if (waitedFor !== undefined) {
    const what = waitedFor === "switch" ? "the slot to switch to its model" : "a free place on the engine";
    const estimate = estimatedSeconds === undefined ? "" : ` The estimate was ${inWords(estimatedSeconds)}.`;
    lines.push(`  It waited ${inWords(waitedSeconds ?? 0)} for ${what}.${estimate}`);
  }
  if (repliedAfterSeconds === undefined) return lines;
  const after = `after ${inWords(repliedAfterSeconds)}`;
  if (result === "answered") lines.push(`  The node began to answer ${after}.`);
  else if (result === "lost") lines.push(`  The node or its connection was lost ${after}.`);
  else lines.push(`  The node refused it ${after}: ${plainText(result ?? "for an unknown reason")}.`);
  return lines;
}

/** How a request without an answer ended, as the database knows it. */
function storedEndOf(unanswered: Explained["unanswered"]): string[] {
  if (!unanswered) return [];
  const { code, advice, status, seconds, requests } = unanswered;
  if (code === null) return [`The client disconnected after ${inWords(seconds)}, before its answer began.`];
  const refusal = { outcome: "refused", refusal: code, code, status, seconds, advice: advice ?? undefined } as const;
  const others =
    requests > 1 ? [`The database has ${requests} requests alike from this one on, refused within seconds.`] : [];
  return [...howItEnded({ ...refusal, bytesSent: 0 }), ...whatHelps(refusal), ...others];
}

function endOf(request: Ended): string[] {
  return [...howItEnded(request), ...whatHelps(request)];
}

type End = Pick<Ended, "outcome" | "status" | "code" | "refusal" | "advice" | "seconds" | "bytesSent">;

function howItEnded(request: End): string[] {
  const took = `after ${inWords(request.seconds)}`;
  const sent = `${counted(request.bytesSent, "byte was", "bytes were")} sent to the client`;
  switch (request.outcome) {
    case "answered":
      return [`The client received the whole answer (${request.status}) ${took}; ${sent}.`];
    case "refused": {
      const reason = request.refusal ?? request.code;
      const advice = request.advice === undefined ? [] : [`What helps: ${request.advice.replaceAll("-", " ")}.`];
      return [`It was refused ${took} with ${request.status}${reason ? `: ${reason}` : ""}.`, ...advice];
    }
    case "client-gone":
      return [`The client disconnected ${took}, before the end of its answer; ${sent}.`];
    case "broken":
      return [`The answer broke off ${took} because a node or engine failed; ${sent}.`];
    case "timeout":
      return [`The answer was cut ${took} at the time limit for requests; ${sent}.`];
    case "stalled":
      return [`The client read its answer too slowly and was cut off ${took}; ${sent}.`];
  }
}

function nowOf(request: Running): string {
  const age = `It has run for ${inWords(request.seconds)}`;
  const { position, estimateSeconds } = request;
  const estimate = estimateSeconds === undefined ? "" : ` The estimated time left is ${inWords(estimateSeconds)}.`;
  const standing = position === undefined ? "" : ` Its position for this model is ${position}.${estimate}`;
  if (request.waitsFor === "switch")
    return `${age}: it waits for its slot (${request.slotState}) to switch to its model.${standing}`;
  if (request.waitsFor === "place") return `${age}: it waits for a free place on the engine.${standing}`;
  switch (request.state) {
    case "waiting":
      return `${age}: it waits in its slot.`;
    case "reading":
      return `${age}: its body is being received or checked.`;
    case "sent":
      return `${age}: it was sent to the node, which reports no state.`;
    case "answering": {
      const speed = request.tokensPerSecond === undefined ? "" : `, ${request.tokensPerSecond} a second`;
      const tokens =
        request.completionTokens === undefined ? "" : ` (${counted(request.completionTokens, "token")}${speed})`;
      return `${age}: it is being answered${tokens}.`;
    }
  }
}

function forgottenOf({ memory: { requests, requestsMax, since }, usage, unanswered }: Explained): string[] {
  const extent = since === null ? "It remembers no requests yet." : `It remembers ${requests}, since ${since}.`;
  const why = `It has restarted, it keeps only the last ${requestsMax}, another router served the request, or the id is wrong.`;
  return [
    `This router does not remember the request. ${why} ${extent}`,
    ...(usage?.length || unanswered ? ["The following is from the database."] : []),
  ];
}

function costOf({ running, ended, usage, setAside }: Explained): string[] {
  if (usage === null) return ["Its cost is unknown: the database does not answer."];
  const rows = usage.map((one) => [
    ...[one.attempt, one.node, one.outcome, one.promptTokens, one.completionTokens, one.factor, one.credits],
  ]);
  const aside = setAside.map(({ attempt, node, reason, detail }) =>
    wrapped(
      `Attempt ${attempt} on ${plainText(node)} is billed to nobody: its usage record was set aside (${plainText(detail ?? reason)}).`,
    ),
  );
  const headers = ["ATTEMPT", "NODE", "OUTCOME", "INPUT", "OUTPUT", "FACTOR", "CREDITS"];
  if (rows.length > 0) return ["It cost:", "", formatTable(headers, rows), ...usage.flatMap(estimateOf), ...aside];
  if (aside.length > 0) return aside;
  if (running) return ["Its cost is not known yet: usage is recorded when it ends."];
  if (ended && !ended.tried.some(({ result }) => result === "answered")) return ["It cost nothing."];
  const none = "The database has no usage record: the request cost nothing, or the record is still on its node";
  return [wrapped(`${none} (\`weiche-agent status\` there).`)];
}

function estimateOf({ attempt, estimatedTokens }: NonNullable<Explained["usage"]>[number]): string[] {
  if (estimatedTokens === 0) return [];
  const why = "the engine reported no count before the answer ended";
  return [wrapped(`Of the tokens of attempt ${attempt}, ${estimatedTokens} were estimated: ${why}.`)];
}
