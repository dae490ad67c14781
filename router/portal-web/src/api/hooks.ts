/** An API as React hooks: what is read is kept and refreshed, what changes something makes what was read stale. */
import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Reply, Routes } from "../../../src/surface/contract/route.ts";
import type { AskOf, Calls } from "./calls.ts";
import { Problem } from "./problem.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
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
  readonly dataUpdatedAt: number;
  refetch(): unknown;
};

export function createHooks<C extends Routes>({ call }: Pick<Calls<C>, "call">) {
  /** While other rows of a list are fetched, those that were shown stay. */
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

  /** `stale`: routes whose answers the change concerns. They are fetched again before the change counts as done. */
  function useChange<Name extends keyof C>(name: Name, ...stale: readonly (keyof C)[]) {
    const client = useQueryClient();
    return useMutation<Reply<C[Name]>, Problem, AskOf<C[Name]>>({
      mutationFn: (ask) => call(name, ask),
      // An answer may hold a key, which goes with the dialog that shows it.
      gcTime: 0,
      onSuccess: async () => {
        await Promise.all(stale.map((route) => client.invalidateQueries({ queryKey: [route] })));
      },
    });
  }
  return { useRead, useChange };
}
