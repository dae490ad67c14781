/**
 * The token of a one-time link. It stands in the fragment, which goes to no server, and is taken out of the address bar, so
 * that it stays in no history.
 */
import { useEffect, useState } from "react";

/** undefined: the link is incomplete. */
export function useLinkToken(): string | undefined {
  const [token, setToken] = useState(() => readToken(location.hash) ?? keptToken());
  useEffect(() => {
    if (token && location.hash) history.replaceState({ link: `#${token}` }, "", location.pathname);
    // Another link that is opened in the same tab loads no page.
    const onChange = () => setToken(readToken(location.hash));
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, [token]);
  return token;
}

/** After a reload. */
function keptToken(): string | undefined {
  return readToken((history.state as { readonly link?: string } | null)?.link ?? "");
}

export function readToken(hash: string): string | undefined {
  return /^#([\w-]{43})$/.exec(hash)?.[1];
}
