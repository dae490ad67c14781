/**
 * Calls routes of the contract on the router's admin socket. Only types are imported from the contract: loading its schemas
 * would slow down every command.
 */
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import type { Contract } from "../contract/contract.ts";
import type { Reply, Route } from "../contract/route.ts";

type OperatorRoute = Exclude<
  Extract<Contract[keyof Contract], { readonly may: readonly [...unknown[], "operator"] }>,
  { readonly only: "console" }
>;
type AddressOf<R extends Route> = R extends Route ? `${R["method"]} ${R["path"]}` : never;
type RouteAt<A, R extends Route = OperatorRoute> = R extends Route ? (A extends AddressOf<R> ? R : never) : never;

/** Method and path, such as `GET /users/:id`. */
export type Address = AddressOf<OperatorRoute>;

/** A reply about the data of an account also has the account's id. */
export type Answer<A extends Address> = Reply<RouteAt<A>> &
  (RouteAt<A> extends { readonly of: string } ? { readonly accountId: string } : unknown);

export interface Sent {
  /** Replaces `:id` in the path. */
  readonly id?: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
}

export type Ask = <A extends Address>(address: A, sent?: Sent) => Promise<Answer<A>>;

/** The router refused the request, or failed. */
export class Failed extends Error {
  /** HTTP status: 404 if what is named is not there. Absent: the command itself refuses. */
  readonly status: number | undefined;
  /** The parameters that are wrong, by their names in the contract. */
  readonly details: readonly { readonly param: string }[];

  constructor(message: string, details: Failed["details"] = [], status?: number) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

export async function askRouter<A extends Address>(
  socketPath: string,
  address: A,
  { id = "", query = {}, body }: Sent,
): Promise<Answer<A>> {
  const [method, path] = address.split(" ") as ["GET" | "POST" | "PATCH" | "DELETE", string];
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const target = `${path.replace(":id", encodeURIComponent(id))}?${new URLSearchParams(given).toString()}`;
  const answer = await askSocket(socketPath, method, target, body);
  if (answer.status >= 300) {
    const { error, details } = answer.body as { readonly error: string; readonly details?: Failed["details"] };
    throw new Failed(error, details, answer.status);
  }
  return answer.body as Answer<A>;
}
