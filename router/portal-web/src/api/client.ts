/**
 * Calls of the portal's JSON API. Requests and replies have the types of the contract, of which nothing but types is
 * imported: the schemas stay on the server.
 */
import type { PortalContract } from "../../../src/surface/contract/contract.ts";
import type { Part, Reply } from "../../../src/surface/contract/route.ts";
import { loginGate } from "./login-gate.ts";

export type RouteName = keyof PortalContract;
type Address = { readonly [Name in RouteName]: `${PortalContract[Name]["method"]} ${PortalContract[Name]["path"]}` };

/** The type checker compares each of them with the contract. */
const addresses: Address = {
  session: "GET /session",
  signInOffers: "GET /sign-in-offers",
  signIn: "POST /sign-in",
  signOut: "POST /sign-out",
  signOutEverywhere: "POST /sign-out-everywhere",
  register: "POST /registration",
  requestPasswordReset: "POST /password-reset/request",
  resetPassword: "POST /password-reset",
  previewInvitation: "POST /invitation/preview",
  acceptInvitation: "POST /invitation",
  profile: "GET /profile",
  updateProfile: "PATCH /profile",
  changePassword: "POST /password",
  devices: "GET /devices",
  endDevice: "DELETE /devices/:id",
  setUpTotp: "POST /totp/set-up",
  confirmTotp: "POST /totp/confirm",
  turnTotpOff: "POST /totp/off",
  invitations: "GET /invitations",
  renewInvitation: "POST /users/:id/invitation",
  withdrawInvitation: "DELETE /users/:id/invitation",
  makeResetLink: "POST /users/:id/password-reset",
  listUsers: "GET /users",
  showUser: "GET /users/:id",
  createUser: "POST /users",
  updateUser: "PATCH /users/:id",
  blockUser: "POST /users/:id/block",
  unblockUser: "POST /users/:id/unblock",
  deleteUser: "DELETE /users/:id",
  listKeys: "GET /keys",
  showKey: "GET /keys/:id",
  createKey: "POST /keys",
  updateKey: "PATCH /keys/:id",
  regenerateKey: "POST /keys/:id/regenerate",
  revokeKey: "POST /keys/:id/revoke",
  showCredits: "GET /credits",
  showUsage: "GET /usage",
  exportUsage: "GET /usage.csv",
  showRefusals: "GET /refusals",
  listNotices: "GET /notices",
  readNotices: "POST /notices/read",
  listModels: "GET /models",
  listChanges: "GET /changes",
  showService: "GET /service",
  chat: "POST /chat",
  showPackage: "GET /package",
  quotePackage: "POST /package/quotes",
  changePackage: "POST /package/changes",
  listInvoiceLines: "GET /package/invoice-lines",
  listAudit: "GET /audit",
  exportAudit: "GET /audit.csv",
};

/** The parts of a request that a route takes; members that it does not take are left out. */
export type Ask<Name extends RouteName> = Wanted<"params", Part<PortalContract[Name], "params">> &
  Wanted<"query", Part<PortalContract[Name], "query">> &
  Wanted<"body", Part<PortalContract[Name], "body">>;
type Wanted<Key extends string, Value> = [Value] extends [undefined]
  ? unknown
  : object extends Value
    ? { readonly [K in Key]?: Value }
    : { readonly [K in Key]: Value };
export type Answer<Name extends RouteName> = Reply<PortalContract[Name]>;

export interface FieldProblem {
  readonly param: string;
  readonly code: string;
}

/** A refusal or a failure of the API. `status` 0: no answer came. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: readonly FieldProblem[];
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(status: number, error: Partial<ErrorBody>, headers = new Headers()) {
    super(error.message ?? "");
    this.status = status;
    this.code = error.code ?? String(status);
    this.details = error.details ?? [];
    this.requestId = headers.get("x-request-id");
    this.retryAfterSeconds = headers.has("retry-after") ? Number(headers.get("retry-after")) : null;
  }
}

interface ErrorBody {
  readonly message: string;
  readonly code: string;
  readonly details?: readonly FieldProblem[];
}

interface Parts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

/** Throws a `Problem`. A login that has ended is asked for again where the person is, and the request is repeated. */
export async function call<Name extends RouteName>(
  name: Name,
  ask: Ask<Name>,
  signal?: AbortSignal,
): Promise<Answer<Name>> {
  const response = await request(name, ask, signal);
  return (response.status === 204 ? undefined : await response.json()) as Answer<Name>;
}

/** The answer itself, for those that are streams. */
export async function request<Name extends RouteName>(
  name: Name,
  ask: Ask<Name>,
  signal?: AbortSignal,
): Promise<Response> {
  const { body } = ask as Parts;
  const [method] = addresses[name].split(" ") as [string];
  const headers = method === "GET" ? undefined : { "content-type": "application/json" };
  const init: RequestInit = {
    method,
    headers,
    body: headers && JSON.stringify(body ?? {}),
    signal: signal ?? null,
    cache: "no-store",
  };
  for (;;) {
    const response = await fetch(addressOf(name, ask), init).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      throw new Problem(0, { code: "unreachable" });
    });
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (problem.code !== "login_required" || !loginGate.isArmed) throw problem;
    await loginGate.wait();
  }
}

/** Where a route is, such as for a link to a file. */
export function addressOf<Name extends RouteName>(name: Name, ask: Ask<Name>): string {
  const { params = {}, query = {} } = ask as Parts;
  const path = addresses[name].split(" ")[1]!.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key]!));
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
  );
  return `/api${path}${search.size > 0 ? `?${search}` : ""}`;
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as { readonly error?: ErrorBody };
  return new Problem(response.status, body.error ?? {}, response.headers);
}
