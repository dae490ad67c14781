/**
 * Reads the live data of a page from the router's stream of events. Connects again whenever the stream ends or is
 * silent for too long.
 */
import { useEffect, useState } from "react";
import type { ConsoleItem, ConsolePage } from "../../../src/surface/contract/console.ts";
import { Problem } from "../api/problem.ts";
import { calls } from "./api.ts";
import { session } from "./session.ts";

export interface LiveItem<Page extends ConsolePage> {
  readonly value: ConsoleItem<Page>;
  /** `Date.now()` at the item's arrival. Its ages grow from then on. */
  readonly atMs: number;
}

export interface Live<Page extends ConsolePage> {
  /** Undefined until the first items arrive. */
  readonly items: ReadonlyMap<string, LiveItem<Page>> | undefined;
  /** The router's time of the last event. */
  readonly asOf: string | undefined;
  /** `stale`: the router has been silent for a while. `failed`: the router cannot read the page's data. */
  readonly state: "connecting" | "live" | "stale" | "failed";
}

const staleAfterMs = 4_000;
const deadAfterMs = 10_000;
const againMs = 2_000;

type Query = Readonly<Record<string, string | number | undefined>>;

export function useLive<Page extends ConsolePage>(page: Page, query: Query = {}): Live<Page> {
  const [live, setLive] = useState<Live<Page>>({ items: undefined, asOf: undefined, state: "connecting" });
  const url = calls.addressOf("watchConsole", { query: { show: page, ...query } });
  useEffect(() => watch<Page>(url, setLive), [url]);
  return live;
}

type Change<Page extends ConsolePage> = (next: (before: Live<Page>) => Live<Page>) => void;

interface News<Page extends ConsolePage> {
  readonly asOf: string;
  readonly items: Readonly<Record<string, ConsoleItem<Page> | null>>;
}

/** Connects to the stream. Returns a function that ends it. */
function watch<Page extends ConsolePage>(url: string, change: Change<Page>): () => void {
  let source: EventSource;
  let heardAtMs = Date.now();
  let again: ReturnType<typeof setTimeout> | undefined;

  function connect(): void {
    source = new EventSource(url);
    heardAtMs = Date.now();
    source.addEventListener("all", (event) => take(event, () => new Map()));
    source.addEventListener("some", (event) => take(event, (items) => new Map(items)));
    source.addEventListener("beat", (event) => hear(event, "live"));
    source.addEventListener("failed", (event) => hear(event, "failed"));
    source.addEventListener("error", () => {
      // The browser reconnects by itself, unless the router has refused.
      if (source.readyState === EventSource.CLOSED) refused();
    });
  }
  function take(event: MessageEvent<string>, begin: (items: Live<Page>["items"]) => Map<string, LiveItem<Page>>): void {
    const { asOf, items: changed } = JSON.parse(event.data) as News<Page>;
    const atMs = (heardAtMs = Date.now());
    change((before) => {
      const items = begin(before.items);
      for (const [key, value] of Object.entries(changed)) {
        if (value === null) items.delete(key);
        else items.set(key, { value: value as ConsoleItem<Page>, atMs });
      }
      return { items, asOf, state: "live" };
    });
  }
  function hear(event: MessageEvent<string>, state: "live" | "failed"): void {
    heardAtMs = Date.now();
    const { asOf } = JSON.parse(event.data) as News<Page>;
    // A failed read has no newer data.
    change((before) => ({ ...before, state, asOf: state === "live" ? asOf : before.asOf }));
  }
  function refused(): void {
    again = setTimeout(() => {
      again = undefined;
      connect();
    }, againMs);
    calls.call("showConsole", {}).catch((error: unknown) => {
      if (error instanceof Problem && error.code === "login_required") session.ended();
    });
  }

  connect();
  const timer = setInterval(() => {
    const silentMs = Date.now() - heardAtMs;
    if (silentMs > staleAfterMs)
      change((before) => (before.state === "stale" || !before.items ? before : { ...before, state: "stale" }));
    if (silentMs <= deadAfterMs || again !== undefined) return;
    source.close();
    connect();
  }, 1_000);
  return () => {
    source.close();
    clearInterval(timer);
    clearTimeout(again);
  };
}

/** Returns the current time in ms, and renders again every `stepMs`, for countdowns. */
export function useClock(stepMs = 500): number {
  const [nowMs, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), stepMs);
    return () => clearInterval(timer);
  }, [stepMs]);
  return nowMs;
}
