/** Keeps a list's state (search, filters, order, page) in the address, so that links and the back button work. */
import { useCallback } from "react";
import { useSearchParams } from "wouter";

export interface ListState {
  readonly get: (name: string) => string | undefined;
  /** Changes parts of the state, and removes undefined ones. Returns to the first page, unless the place itself changes. */
  readonly set: (parts: Parts) => void;
  /** Returns the query of an address with these changes. */
  readonly with: (parts: Parts) => string;
  readonly page: number;
  readonly search: string | undefined;
  readonly sort: string | undefined;
  readonly order: "asc" | "desc" | undefined;
  /** Whether a search or filter is active. */
  readonly isFiltered: boolean;
}

type Parts = Readonly<Record<string, string | undefined>>;

function changed(before: URLSearchParams, parts: Parts): URLSearchParams {
  const next = new URLSearchParams(before);
  for (const place of ["page", "before"]) if (!(place in parts)) next.delete(place);
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
    isFiltered: [...params.keys()].some(
      (name) => !["page", "before", "sort", "order", "regenerate", "revoked"].includes(name),
    ),
  };
}

/** Returns `value` if it is one of `values`, because the query of a URL may contain any text. */
export function oneOf<const T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((one) => one === value);
}

function readPage(text: string | undefined): number {
  const page = Number(text ?? 1);
  return Number.isInteger(page) && page >= 1 && page <= 100_000 ? page : 1;
}
