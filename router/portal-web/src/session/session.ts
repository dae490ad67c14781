/** The signed-in user. The server decides about rights, and pages ask whether the user may call an operation. */
import { createContext, useContext } from "react";
import type { Answer, RouteName } from "../api/client.ts";

export type Session = Answer<"session">;

export const SessionContext = createContext<Session | null>(null);

/** Returns the session, for pages behind the sign-in. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("this page is behind the sign-in");
  return session;
}

export function useMay(): (operation: RouteName) => boolean {
  const { actions } = useSession();
  return (operation) => actions.includes(operation);
}
