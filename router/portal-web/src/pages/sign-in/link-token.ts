/**
 * Reads the token of a one-time link from its fragment, which browsers send to no server. Removes it from the address bar,
 * so that no history keeps it.
 */
import { useEffect, useState } from "react";

/** Returns undefined if the link is incomplete. */
export function useLinkToken(): string | undefined {
  const [token, setToken] = useState(() => readToken(location.hash) ?? keptToken());
  useEffect(() => {
    if (token && location.hash) history.replaceState({ link: `#${token}` }, "", location.pathname);
    // Opening another link in the same tab does not load the page again.
    const onChange = () => setToken(readToken(location.hash));
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, [token]);
  return token;
}

/** Finds the token again after a reload. */
function keptToken(): string | undefined {
  return readToken((history.state as { readonly link?: string } | null)?.link ?? "");
}

function readToken(hash: string): string | undefined {
  return /^#([\w-]{43})$/.exec(hash)?.[1];
}
