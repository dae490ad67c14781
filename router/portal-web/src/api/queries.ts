/** The API as React hooks: what is read is kept and refreshed, what changes something makes what was read stale. */
import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call, Problem, type Answer, type Ask, type RouteName } from "./client.ts";

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

/** While other rows of a list are fetched, those that were shown stay. */
export function useRead<Name extends RouteName>(
  name: Name,
  ask: Ask<Name>,
  { refreshMs, enabled = true }: ReadOptions = {},
) {
  return useQuery<Answer<Name>, Problem>({
    queryKey: [name, ask],
    queryFn: ({ signal }) => call(name, ask, signal),
    placeholderData: keepPreviousData as never,
    refetchInterval: refreshMs ?? false,
    enabled,
  });
}

export type Read<T> = {
  readonly data: T | undefined;
  readonly error: Problem | null;
  readonly isPending: boolean;
  readonly dataUpdatedAt: number;
  refetch(): unknown;
};

/** `stale`: routes whose answers the change concerns. They are fetched again before the change counts as done. */
export function useChange<Name extends RouteName>(name: Name, ...stale: readonly RouteName[]) {
  const client = useQueryClient();
  return useMutation<Answer<Name>, Problem, Ask<Name>>({
    mutationFn: (ask) => call(name, ask),
    // An answer may hold a key, which goes with the dialog that shows it.
    gcTime: 0,
    onSuccess: async () => {
      await Promise.all(stale.map((route) => client.invalidateQueries({ queryKey: [route] })));
    },
  });
}
