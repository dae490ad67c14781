/**
 * Calls of a JSON API. Requests and replies have the types of the contract, of which only addresses and types are imported:
 * the schemas stay on the server.
 */
import { splitAddress } from "../../../src/surface/contract/addresses.ts";
import type { Part, Reply, Route, Routes } from "../../../src/surface/contract/route.ts";
import { Problem, type ErrorBody } from "./problem.ts";

/** The parts of a route's request. Parts that the route does not take are left out. */
export type AskOf<R extends Route> = Wanted<"params", Part<R, "params">> &
  Wanted<"query", Part<R, "query">> &
  Wanted<"body", Part<R, "body">>;
type Wanted<Key extends string, Value> = [Value] extends [undefined]
  ? unknown
  : object extends Value
    ? { readonly [K in Key]?: Value }
    : { readonly [K in Key]: Value };

interface Parts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

/** The calls. Each throws a `Problem` for a refusal or failure. */
export type Calls<C extends Routes> = ReturnType<typeof createCalls<C>>;

/**
 * Makes the calls. `loginEnded` is called if a login is required. If it returns a promise, the request is repeated after
 * it. Otherwise the refusal is thrown.
 */
export function createCalls<C extends Routes>(
  addresses: Readonly<Record<keyof C, string>>,
  loginEnded: () => Promise<void> | undefined = () => undefined,
) {
  /** Returns the response itself, for streams. */
  async function request<Name extends keyof C>(
    name: Name,
    ask: AskOf<C[Name]>,
    signal?: AbortSignal,
  ): Promise<Response> {
    const { body } = ask as Parts;
    const [method] = splitAddress(addresses[name]);
    const headers = method === "GET" ? undefined : { "content-type": "application/json" };
    const init: RequestInit = {
      method,
      headers,
      body: headers && JSON.stringify(body ?? {}),
      signal: signal ?? null,
      cache: "no-store",
    };
    for (;;) {
      const response = await fetch(addressOf(name, ask), init).catch((error: unknown) => {
        if (signal?.aborted) throw error;
        throw new Problem(0, { code: "unreachable" });
      });
      if (response.ok) return response;
      const problem = await problemOf(response);
      const again = problem.code === "login_required" ? loginEnded() : undefined;
      if (!again) throw problem;
      await again;
    }
  }

  async function call<Name extends keyof C>(
    name: Name,
    ask: AskOf<C[Name]>,
    signal?: AbortSignal,
  ): Promise<Reply<C[Name]>> {
    const response = await request(name, ask, signal);
    return (response.status === 204 ? undefined : await response.json()) as Reply<C[Name]>;
  }

  /** Returns a route's URL, such as for a link to a file. */
  function addressOf<Name extends keyof C>(name: Name, ask: AskOf<C[Name]>): string {
    const { params = {}, query = {} } = ask as Parts;
    const [, pattern] = splitAddress(addresses[name]);
    const path = pattern.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key]!));
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
    );
    return `/api${path}${search.size > 0 ? `?${search}` : ""}`;
  }
  return { request, call, addressOf };
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as { readonly error?: ErrorBody };
  return new Problem(response.status, body.error ?? {}, response.headers);
}
