/** The sign-in by a link: its code, in the fragment of the address, is exchanged for a session at once. */
import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { queryClient } from "../api/hooks.ts";
import type { Problem } from "../api/problem.ts";
import { Skeleton } from "../elements/loaded.tsx";
import { ProblemBox } from "../elements/problem-box.tsx";
import { Entrance } from "../shell/entrance.tsx";
import { calls, type ConsoleSession } from "./api.ts";
import { session } from "./session.ts";
import { useConsoleTexts } from "./texts.ts";

export function SignInPage({ hasEnded = false }: { readonly hasEnded?: boolean }) {
  const { signIn } = useConsoleTexts().c;
  const code = useCode();
  const [, navigate] = useLocation();
  const open = useMutation<ConsoleSession, Problem, string>({
    mutationFn: (given) => calls.call("openConsole", { body: { code: given } }),
    onSuccess(opened) {
      queryClient.setQueryData(["showConsole", {}], opened);
      session.began();
      navigate("/", { replace: true });
    },
    async onError({ code: reason }) {
      if (reason !== "login_failed") return;
      // Whoever opens a used link again has a session from its first use.
      const before = await calls.call("showConsole", {}).catch(() => undefined);
      if (!before) return;
      queryClient.setQueryData(["showConsole", {}], before);
      session.began();
      navigate("/", { replace: true });
    },
  });
  const { mutate } = open;
  useEffect(() => {
    if (code !== undefined) mutate(code);
  }, [code, mutate]);
  if (code !== undefined && !open.error)
    return (
      <Entrance title={signIn.title} lead={signIn.exchanging}>
        <Skeleton />
      </Entrance>
    );
  const isOver = open.error?.code === "login_failed";
  return (
    <Entrance title={signIn.title} lead={isOver ? signIn.over : hasEnded ? signIn.ended : undefined}>
      {open.error && !isOver && <ProblemBox problem={open.error} onRetry={() => mutate(code!)} />}
      <p>{signIn.lead}</p>
      <pre className="card code-text">weiche console</pre>
    </Entrance>
  );
}

/** Reads the link's code, and removes it from the address bar, so that no history keeps it. */
function useCode(): string | undefined {
  const [code, setCode] = useState(() => readCode());
  useEffect(() => {
    const take = () => {
      const found = readCode();
      if (found === undefined) return;
      history.replaceState(null, "", location.pathname);
      setCode(found);
    };
    take();
    // Opening another link in the same tab does not load the page again.
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
  return code;
}

function readCode(): string | undefined {
  return /^#([\w-]{1,200})$/.exec(location.hash)?.[1];
}
