/** A change that signs the user in. Their start page then replaces the current page. */
import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { call, type Ask } from "../../api/client.ts";
import { queryClient } from "../../api/hooks.ts";
import type { Problem } from "../../api/problem.ts";

export function useEntry<Name extends "acceptInvitation" | "confirmRegistration" | "register">(name: Name) {
  const [, navigate] = useLocation();
  return useMutation<void, Problem, Ask<Name>>({
    mutationFn: (ask) => call(name, ask),
    onSuccess: async () => {
      await queryClient.resetQueries({ queryKey: ["session"] });
      navigate("/", { replace: true });
    },
  });
}
