/**
 * Sends the items of a console page as server-sent events: first all of them, then the changed ones.
 *
 *   event: all    {asOf, items}   items by their keys
 *   event: some   {asOf, items}   the changed items; null for a removed one
 *   event: beat   {asOf}          nothing has changed for a second
 *   event: failed {asOf}          the items cannot be read now; the earlier ones stay valid
 */
import type { ServerResponse } from "node:http";
import { sleep, type Clock } from "@weiche/shared/time/clock.ts";
import { instantText } from "../../../db/database.ts";
import { isUnavailable } from "../../../db/failures.ts";
import type { Route } from "../../contract/route.ts";
import type { Call } from "../../server/add-routes.ts";

/** A page's items by their keys. An item that is the same object as before has not changed. */
export type Items = ReadonlyMap<string, object>;

export interface Look {
  readonly everyMs: number;
  readonly read: () => Items | Promise<Items>;
}

/** Interval for sending an item in which only ages have grown. */
const agesEveryMs = 1_000;
/** A client that reads nothing for this time is cut off. */
const unreadMsMax = 30_000;
/** The browser's pause before it reconnects. */
const retryMs = 1_000;

/** Resolves when the client has left. Throws the errors of `read`, except if the database does not answer. */
export async function sendLive(
  { takeOver, left }: Pick<Call<Route>, "takeOver" | "left">,
  clock: Clock,
  look: Look,
): Promise<void> {
  const { response } = takeOver();
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" });
  response.write(`retry: ${retryMs}\n\n`);
  const changes = new Changes();
  let [readAtMs, saidAtMs] = [clock.monotonicMs(), -Infinity];
  for (; !left.aborted; await sleep(clock, look.everyMs)) {
    const nowMs = clock.monotonicMs();
    if (response.writableNeedDrain) {
      if (nowMs - readAtMs > unreadMsMax) response.destroy();
      continue;
    }
    readAtMs = nowMs;
    const found = await readOrFail(look);
    const news = found && changes.since(found, nowMs);
    if (!news && nowMs - saidAtMs < agesEveryMs) continue;
    saidAtMs = nowMs;
    const asOf = instantText(clock.now());
    if (news) say(response, news.isAll ? "all" : "some", { asOf, items: news.items });
    else say(response, found ? "beat" : "failed", { asOf });
  }
}

/** Returns undefined if the database does not answer. */
async function readOrFail({ read }: Look): Promise<Items | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isUnavailable(error)) return undefined;
    throw error;
  }
}

function say(response: ServerResponse, event: string, data: object): void {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

interface Sent {
  readonly item: object;
  readonly text: string;
  readonly atMs: number;
}

/** Keeps the items that were sent, and finds changed ones. */
class Changes {
  #sent: Map<string, Sent> | undefined;

  /** Returns undefined if nothing has changed. */
  since(found: Items, nowMs: number): { readonly isAll: boolean; readonly items: object } | undefined {
    const isAll = this.#sent === undefined;
    const sent = (this.#sent ??= new Map());
    const items: Record<string, object | null> = {};
    for (const [key, item] of found) {
      const before = sent.get(key);
      if (before?.item === item) continue;
      const text = JSON.stringify(item);
      if (before && !isNews(before, text, nowMs)) continue;
      sent.set(key, { item, text, atMs: nowMs });
      items[key] = item;
    }
    for (const key of sent.keys())
      if (!found.has(key)) {
        sent.delete(key);
        items[key] = null;
      }
    return isAll || Object.keys(items).length > 0 ? { isAll, items } : undefined;
  }
}

function isNews({ text, atMs }: Sent, now: string, nowMs: number): boolean {
  if (text === now) return false;
  return nowMs - atMs >= agesEveryMs || withoutAges(text) !== withoutAges(now);
}

/** Removes members whose names end in `seconds`: they are ages, which grow without a change. */
function withoutAges(text: string): string {
  return text.replaceAll(/"\w*[sS]econds":[\d.]+,?/g, "");
}
