/** An API as React hooks. Answers are kept and refreshed, and a change marks the answers that it concerns as stale. */
import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Reply, Routes } from "../../../src/surface/contract/route.ts";
import type { AskOf, Calls } from "./calls.ts";
import { Problem } from "./problem.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    // A call without a network fails at once, instead of waiting for the network with a busy button.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && error instanceof Problem && [0, 503].includes(error.status),
    },
  },
});

interface ReadOptions {
  readonly refreshMs?: number;
  readonly enabled?: boolean;
}

export type Read<T> = {
  readonly data: T | undefined;
  readonly error: Problem | null;
  readonly isPending: boolean;
  /** Whether `data` answers another question, until the answer comes. */
  readonly isPlaceholderData: boolean;
  readonly dataUpdatedAt: number;
  refetch(): unknown;
};

export function createHooks<C extends Routes>({ call }: Pick<Calls<C>, "call">) {
  /** Keeps showing the old rows while other rows of a list are fetched. */
  function useRead<Name extends keyof C>(
    name: Name,
    ask: AskOf<C[Name]>,
    { refreshMs, enabled = true }: ReadOptions = {},
  ) {
    return useQuery<Reply<C[Name]>, Problem>({
      queryKey: [name, ask],
      queryFn: ({ signal }) => call(name, ask, signal),
      placeholderData: keepPreviousData as never,
      refetchInterval: refreshMs ?? false,
      enabled,
    });
  }

  /** `stale`: routes whose answers the change concerns. They are fetched again before the change is done. */
  function useChange<Name extends keyof C>(name: Name, ...stale: readonly (keyof C)[]) {
    const client = useQueryClient();
    return useMutation<Reply<C[Name]>, Problem, AskOf<C[Name]>>({
      mutationFn: (ask) => call(name, ask),
      // An answer may contain a key, which must disappear with its dialog.
      gcTime: 0,
      onSuccess: async () => {
        await Promise.all(stale.map((route) => client.invalidateQueries({ queryKey: [route] })));
      },
    });
  }
  return { useRead, useChange };
}
