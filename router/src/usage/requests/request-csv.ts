/** Writes listed requests as CSV, newest first, in steps, so that memory use stays small. */
import { uuidv7TimeMs, type RequestId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../../db/database.ts";
import { csvLine } from "../csv.ts";
import { namedRequests, type NamedRequest } from "./named-requests.ts";
import { readRequests, type RequestFilter } from "./request-list.ts";

const rowsPerStep = 1_000;

/** Yields the lines until the end of the list. Throws at the next step once `left` aborts. */
export async function* requestLines(
  database: Database,
  filter: RequestFilter,
  left: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  yield csvLine(Object.keys(columns));
  let before: string | undefined;
  do {
    left.throwIfAborted();
    const { items, next } = await readRequests(database, filter, { limit: rowsPerStep, before });
    const named = await namedRequests(database, items);
    if (named.length > 0) yield named.map((one) => csvLine(cells.map((cell) => cell(one)))).join("");
    before = next;
  } while (before !== undefined);
}

const columns: Readonly<Record<string, (request: NamedRequest) => string | number | null>> = {
  at: ({ requestId }) => instantText(uuidv7TimeMs(requestId as RequestId)),
  requestId: ({ requestId }) => requestId,
  model: ({ model }) => model,
  keyId: ({ keyId }) => keyId,
  keyKind: ({ key }) => key.kind,
  keyName: ({ key }) => key.name,
  user: ({ key }) => key.userEmail,
  outcome: ({ outcome }) => outcome,
  status: ({ status }) => status,
  refusal: ({ code }) => code,
  requests: ({ requests }) => requests,
  promptTokens: ({ promptTokens }) => promptTokens,
  completionTokens: ({ completionTokens }) => completionTokens,
  credits: ({ credits }) => credits,
  firstTokenSeconds: ({ firstTokenSeconds }) => firstTokenSeconds,
  seconds: ({ seconds }) => seconds,
};
const cells = Object.values(columns);
