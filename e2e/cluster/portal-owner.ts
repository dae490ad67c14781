/** Signs the Owner of a new account in at a cluster's portal. */
import type { Cluster } from "./cluster.ts";

export const ownerPassword = "a password that nobody guesses";

export interface PortalOwner {
  readonly accountId: string;
  readonly userId: string;
  /** The session's cookie as `name=value`. */
  readonly cookie: string;
  /** Reads JSON from a path below `/api`. */
  get<Reply>(path: string): Promise<Reply>;
  send(path: string, body: object, signal?: AbortSignal): Promise<Response>;
}

export async function joinAsOwner(
  cluster: Cluster,
  { name, email } = { name: "ACME", email: "ada@example.com" },
): Promise<PortalOwner> {
  const origin = `http://${cluster.router.listen["portal"]}`;
  let cookie = "";
  const send: PortalOwner["send"] = (path, body, signal) =>
    fetch(`${origin}/api${path}`, {
      method: "POST",
      headers: { origin, "content-type": "application/json", cookie },
      body: JSON.stringify(body),
      ...(signal ? { signal } : {}),
    });
  const wish = ["--name", name, "--owner-email", email, "--package", "Pro", "--yes"];
  const made = (await cluster.weiche("account", "create", ...wish)) as Record<
    "id" | "ownerUserId" | "invitationUrl",
    string
  >;
  const { id: accountId, ownerUserId: userId, invitationUrl } = made;
  const [, token] = invitationUrl.split("#");
  const joined = await send("/invitation", { token, password: ownerPassword });
  cookie = joined.headers.getSetCookie()[0]!.split(";")[0]!;
  return {
    ...{ accountId, userId, cookie },
    send,
    async get<Reply>(path: string) {
      return (await (await fetch(`${origin}/api${path}`, { headers: { cookie } })).json()) as Reply;
    },
  };
}
