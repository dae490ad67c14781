/** Adds the names of accounts, keys and users to listed requests. */
import type { AccountId, KeyId } from "@weiche/shared/ids.ts";
import type { Database } from "../../db/database.ts";
import type { ListedRequest } from "./request-list.ts";

export interface NamedRequest extends ListedRequest {
  readonly account: { readonly id: AccountId; readonly name: string | null };
  readonly key: {
    readonly id: KeyId;
    readonly kind: "api" | "test-chat";
    /** null for a key that is not known any more, and for the playground. */
    readonly name: string | null;
    readonly lastFour: string | null;
    /** null for a deleted user. */
    readonly userEmail: string | null;
  };
}

export async function namedRequests(
  { pool }: Database,
  requests: readonly ListedRequest[],
): Promise<readonly NamedRequest[]> {
  if (requests.length === 0) return [];
  const ids = (of: (request: ListedRequest) => string) => [...new Set(requests.map(of))];
  const { rows } = await pool.query<Named>({
    name: "names-of-requests",
    text: `
      select id::text, name, last_four as "lastFour" from known_keys where id = any($1::uuid[])
      union all
      select id::text, email, null from users where id = any($2::uuid[]) and deleted_at is null
      union all
      select id::text, name, null from accounts where id = any($3::uuid[])`,
    values: [ids(({ keyId }) => keyId), ids(({ userId }) => userId), ids(({ accountId }) => accountId)],
  });
  const names = new Map(rows.map((row) => [row.id, row]));
  return requests.map((request) => {
    const { accountId, userId, keyId } = request;
    // The playground's key has its user's id.
    const isChat = (keyId as string) === userId;
    const key = isChat ? undefined : names.get(keyId);
    return {
      ...request,
      account: { id: accountId, name: names.get(accountId)?.name ?? null },
      key: {
        id: keyId,
        kind: isChat ? "test-chat" : "api",
        name: key?.name ?? null,
        lastFour: key?.lastFour ?? null,
        userEmail: names.get(userId)?.name ?? null,
      },
    };
  });
}

interface Named {
  readonly id: string;
  readonly name: string;
  readonly lastFour: string | null;
}
