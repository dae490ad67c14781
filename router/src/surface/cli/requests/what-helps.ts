/** Advice for operators about a request that was refused or whose answer did not complete. */
import type { RefusalWord } from "../../../usage/refusal-codes.ts";
import type { Answer } from "../client.ts";

type Outcome = NonNullable<Answer<"explainRequest">["ended"]>["outcome"];

/** Refusals without a sentence: their word of advice is enough, or nobody's key was known. */
type Plain =
  | "invalid_api_key"
  | "address_limit"
  | "path_not_supported"
  | "key_revoked"
  | "key_expired"
  | "key_blocked_by_limit"
  | "user_blocked"
  | "account_blocked"
  | "no_package"
  | "insufficient_quota"
  | "too_large"
  | "invalid_request"
  | "key_model_access_denied";

const refusals: Readonly<Record<Exclude<RefusalWord, Plain>, string>> = {
  rate_limit_minute:
    "Its `retry-after` was the time until this request would have been admitted. The account's package sets the limit: `weiche credits show`",
  rate_limit_parallel:
    "Its `retry-after` was the time until this request would have been admitted. An answer holds its place until its client has read it",
  context_window_exceeded:
    "The error message names the tokens of input and output. Clients recognise the code `context_length_exceeded`",
  too_many_answers: "The model's `answersMax` in the catalogue and the number of places of an engine limit `n`",
  schema_refused:
    "The error message names the place and the bound; the portal's help page lists all bounds. Optional tools may exceed them: they are sent in a lighter form, unless they contain `oneOf`",
  body_too_slow: "A body must arrive within 60 s plus one second for each 250 KB",
  no_room_for_body: "One account gets at most half of the memory for large bodies. Bodies wait for memory up to 30 s",
  internal:
    "`weiche nodes` shows engines whose requests fail. The router prefers other nodes, and an agent restarts an engine that fails three requests in a row",
  engine_died: "`weiche nodes` shows why engines failed, and the node agent's log has more of their output",
  request_barred:
    "Two engines died while they worked on this request, so it is refused. Other requests of the account are served",
  model_switching:
    "Its `retry-after` was the time until a request would probably be held for the model's next turn, at most 59 s. With `whileSwitching: hold`, a request is refused only if that turn comes after `waiterSeconds` or after its own time limit. Fewer models per slot or faster starts help",
  maintenance: "`weiche nodes` shows nodes in maintenance, and `weiche routers` whether this router is stopping",
  model_unavailable:
    "`weiche nodes` shows whether the engine is starting, failed to start, or is avoided because its requests failed",
  overloaded: "`weiche nodes` shows running and waiting requests. If this repeats, the model needs more places",
  no_node_available:
    "`weiche models` shows which nodes offer the model, and `weiche nodes` whether they can be reached",
  timeout: "To end a hanging engine earlier, lower `engines[].silentSeconds` in agent.yaml",
};

const outcomes: Readonly<Record<Exclude<Outcome, "answered" | "refused" | "client-gone">, string>> = {
  broken:
    "`weiche nodes` shows nodes and engines in trouble, and the node agent's log has the fault. The request costs nothing",
  timeout:
    "Clients can ask for shorter answers. To end a hanging engine earlier, lower `engines[].silentSeconds` in agent.yaml",
  stalled:
    "A client must read at least 1 KiB/s on average, with 60 s of patience. The answer costs what was generated until then",
};

/** Returns at most one text. */
export function whatHelps({ outcome, refusal }: { readonly outcome: Outcome; readonly refusal?: string }): string[] {
  const sentences: Readonly<Record<string, string>> = outcome === "refused" ? refusals : outcomes;
  const word = outcome === "refused" ? refusal : outcome;
  return word !== undefined && Object.hasOwn(sentences, word) ? [`${sentences[word]}.`] : [];
}
