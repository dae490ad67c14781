/** The shape of a route in the contract, and schemas that many routes share. Contains only data, because browsers import it. */
import { Type, type Static, type TObject, type TSchema } from "typebox";

/**
 * Who may call a route: the roles of signed-in people; `operator` for a person who can open the router's admin socket,
 * or who opened the console with a link made there; `nobody` for a caller without a session.
 */
export type Principal = "owner" | "admin" | "member" | "operator" | "nobody";

/** A route without its address. The files of this folder declare these. */
export interface RouteTerms {
  readonly summary: string;
  /** The allowed callers. */
  readonly may: readonly Principal[];
  /** The only entrance that serves the route. If undefined, every entrance with allowed callers serves it. */
  readonly only?: "admin-socket" | "console";
  /**
   * Set on routes about one account's data. A session implies the account. For the operator, `user` and `key` mean the
   * account of the user or key `:id` in the path. `account` means the account in the query's `account`, or the account
   * of the user `userId`.
   */
  readonly of?: "account" | "user" | "key";
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: TObject;
  /** The operator's query and body, if they differ. */
  readonly operator?: { readonly query?: TObject; readonly body?: TObject };
  /** The handler reads the body, by rules of its own. `body` then only says what it accepts. */
  readonly readsBody?: true;
  /** If undefined, the answer is empty with status 204, or a stream. */
  readonly reply?: TSchema;
  /** Status of the reply. Defaults to 200. */
  readonly status?: 201;
  /** The media type of an answer that the handler writes itself. */
  readonly stream?: "text/csv" | "text/event-stream";
}

export type RouteTable = Readonly<Record<string, RouteTerms>>;

export interface Route extends RouteTerms {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/api` on listeners for browsers, with its parameters as `:name`. */
  readonly path: string;
}

export type Routes = Readonly<Record<string, Route>>;

/** Allows replies to contain readonly values. */
type Frozen<T> = T extends object ? { readonly [Name in keyof T]: Frozen<T[Name]> } : T;

/** A route's reply, as the client receives it. */
export type Reply<R extends RouteTerms> = R["reply"] extends TSchema ? Frozen<Static<R["reply"]>> : void;
/** A part of a browser's request. `undefined` if the route takes none. */
export type Part<R extends RouteTerms, Name extends "params" | "query" | "body"> = R[Name] extends TSchema
  ? Static<R[Name]>
  : undefined;
/** A part of the operator's request, if it differs. */
export type OperatorPart<R extends RouteTerms, Name extends "query" | "body"> = R["operator"] extends {
  readonly [N in Name]: infer S extends TSchema;
}
  ? Static<S>
  : never;

export const everybody = ["owner", "admin", "member"] as const;
const everybodyAndOperator = [...everybody, "operator"] as const;
export const administrators = ["owner", "admin"] as const;
const administratorsAndOperator = [...administrators, "operator"] as const;

const closed = { additionalProperties: false } as const;

/** Returns the schema of an object with these members and no others. */
export function object<P extends Record<string, TSchema>>(members: P, options: object = {}) {
  return Type.Object(members, { ...closed, ...options });
}

export function orNull<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

export const id = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
export const byId = object({ id });

/** Callers and subject of routes about the data of an account, or of one of its users or keys. */
export const ofAccount = { may: everybodyAndOperator, of: "account" } as const;
export const ofAccountForAdministrators = { may: administratorsAndOperator, of: "account" } as const;
export const ofUser = { may: administratorsAndOperator, of: "user", params: byId } as const;
export const ofKey = { may: everybodyAndOperator, of: "key", params: byId } as const;

const idOrName = Type.String({
  minLength: 1,
  maxLength: 200,
  description: "The id, the start of the id (at least 4 characters), or the name.",
});
/** How the operator names an account. */
export const accountName = idOrName;
export const userName = Type.String({
  minLength: 1,
  maxLength: 254,
  description: "The user's id, the start of the id (at least 4 characters), or the e-mail address.",
});
export const keyName = idOrName;
/** A name is not blank and has no control characters, because they could forge lines on a screen. */
export const name = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$",
});
export const email = Type.String({
  maxLength: 254,
  pattern: "^[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+@[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+$",
});
/** A password to compare. It has no minimum length, because users of earlier versions may have a shorter one. */
const typedPassword = Type.String({ minLength: 1, maxLength: 1024 });
export const code = Type.String({
  minLength: 6,
  maxLength: 40,
  description: "A code from the authenticator, or a recovery code.",
});
/** How a signed-in person proves who they are. */
export const proof = { password: typedPassword, code: Type.Optional(code) };
/** A German day, such as `2026-11-21`. */
export const day = Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$" });
/** An instant, such as `2026-11-21T13:00:00Z`. */
export const instant = Type.String({
  maxLength: 40,
  pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$",
});
/** A decimal number with three places. */
export const credits = Type.String({ pattern: "^\\d+\\.\\d{3}$" });
/** A credit limit, below a thousand million. */
export const creditLimit = Type.String({ pattern: "^\\d{1,9}(\\.\\d{1,3})?$" });
export const cents = Type.Integer();
export const count = Type.Integer({ minimum: 0 });
/** Ids of catalogue models. null allows every model. */
export const modelList = orNull(
  Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: 200, uniqueItems: true }),
);
export const role = Type.Enum([...everybody]);
export const packageName = Type.String({ minLength: 1, maxLength: 60 });
export const modelStatus = Type.Enum(["Beta", "Verfügbar", "Auslaufend", "Demnächst"]);

const pageSizeDefault = 50;
const pageSizeMax = 200;

/** Returns the query schema of a list that the server pages, filters and sorts. `sort`: the enum of sort keys. */
export function pageQuery<S extends TSchema, P extends Record<string, TSchema>>(sort: S, more: P) {
  return object({
    page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description: "The page number, from 1." })),
    pageSize: Type.Optional(
      Type.Integer({ minimum: 1, maximum: pageSizeMax, description: `Defaults to ${pageSizeDefault}.` }),
    ),
    search: Type.Optional(Type.String({ maxLength: 200 })),
    sort: Type.Optional(sort),
    order: Type.Optional(Type.Enum(["asc", "desc"])),
    ...more,
  });
}

/** Returns the schema of one page. `total` counts the items of all pages. */
export function pageOf<T extends TSchema, M extends Record<string, TSchema> = {}>(item: T, more?: M) {
  return object({ items: Type.Array(item), total: count, page: count, pageSize: count, ...(more as M) });
}

/** Returns the rows of a list that a query requests. */
export function pageWindow(query: { readonly page?: number; readonly pageSize?: number }) {
  const { page = 1, pageSize = pageSizeDefault } = query;
  return { page, pageSize, limit: pageSize, offset: (page - 1) * pageSize };
}
