/**
 * Calls routes of the contract on the router's admin socket. Only addresses and types are imported from the contract:
 * loading its schemas would slow down every command.
 */
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import { addresses, splitAddress } from "../contract/addresses.ts";
import type { Contract } from "../contract/contract.ts";
import type { Reply } from "../contract/route.ts";

/** A route that the operator calls on the admin socket. */
type OperatorRoute = {
  [Name in keyof Contract]: Contract[Name] extends { readonly only: "console" }
    ? never
    : "operator" extends Contract[Name]["may"][number]
      ? Name
      : never;
}[keyof Contract];

/** Replies about an account's data also carry its id. */
export type Answer<Name extends OperatorRoute> = Reply<Contract[Name]> &
  (Contract[Name] extends { readonly of: string } ? { readonly accountId: string } : unknown);

export interface Sent {
  /** Replaces `:id` in the path. */
  readonly id?: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
}

export type Ask = <Name extends OperatorRoute>(name: Name, sent?: Sent) => Promise<Answer<Name>>;

/** The user has stopped the command with Ctrl-C. */
export class Stopped extends Error {}

/** The router refused the request, or failed. */
export class Failed extends Error {
  /** HTTP status, such as 404 for an unknown name. Undefined if the command itself refuses. */
  readonly status: number | undefined;
  /** The wrong parameters, by their names in the contract. */
  readonly details: readonly { readonly param: string }[];

  constructor(message: string, details: Failed["details"] = [], status?: number) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

export async function askRouter<Name extends OperatorRoute>(
  socketPath: string,
  name: Name,
  { id = "", query = {}, body }: Sent,
): Promise<Answer<Name>> {
  const [method, path] = splitAddress(addresses[name]);
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const target = `${path.replace(":id", encodeURIComponent(id))}?${new URLSearchParams(given).toString()}`;
  const answer = await askSocket(socketPath, method, target, body);
  if (answer.status >= 300) {
    const { error, details } = answer.body as { readonly error: string; readonly details?: Failed["details"] };
    throw new Failed(error, details, answer.status);
  }
  return answer.body as Answer<Name>;
}
