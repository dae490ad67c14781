/** Keeps the state of a list (words, filters, order, page) in the address, so that it can be linked and gone back to. */
import { useCallback } from "react";
import { useSearchParams } from "wouter";

export interface ListState {
  readonly get: (name: string) => string | undefined;
  /** Undefined removes a part. Begins with the first page again unless the page is what changes. */
  readonly set: (parts: Parts) => void;
  /** The query of an address with these parts changed. */
  readonly with: (parts: Parts) => string;
  readonly page: number;
  readonly search: string | undefined;
  readonly sort: string | undefined;
  readonly order: "asc" | "desc" | undefined;
  /** Whether anything but order and page is chosen. */
  readonly isFiltered: boolean;
}

type Parts = Readonly<Record<string, string | undefined>>;

function changed(before: URLSearchParams, parts: Parts): URLSearchParams {
  const next = new URLSearchParams(before);
  if (!("page" in parts)) next.delete("page");
  for (const [name, value] of Object.entries(parts)) {
    if (value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  return next;
}

export function useListState(): ListState {
  const [params, setParams] = useSearchParams();
  const get = (name: string) => params.get(name) ?? undefined;
  const set = useCallback(
    (parts: Parts) => setParams((before) => changed(before, parts), { replace: true }),
    [setParams],
  );
  const order = get("order");
  return {
    get,
    set,
    with: (parts) => changed(params, parts).toString(),
    page: readPage(get("page")),
    search: get("search"),
    sort: get("sort"),
    order: order === "asc" || order === "desc" ? order : undefined,
    isFiltered: [...params.keys()].some((name) => !["page", "sort", "order"].includes(name)),
  };
}

/** The value if it is one of those that there are: an address can say anything. */
export function oneOf<const T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((one) => one === value);
}

function readPage(text: string | undefined): number {
  const page = Number(text ?? 1);
  return Number.isInteger(page) && page >= 1 && page <= 100_000 ? page : 1;
}
