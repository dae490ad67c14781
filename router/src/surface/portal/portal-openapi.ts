/** The portal's JSON API as an OpenAPI 3.1 document, made of its contract. */
import { Type, type TObject } from "typebox";
import type { Route, Routes } from "../contract/route.ts";
import { errorAnswers } from "../server/error-answers.ts";
import { cookieName } from "../server/session-cookie.ts";
import { isForPeople } from "./portal-entrance.ts";

/** `baseUrl`: URL of the portal. */
export function portalOpenApi(contract: Routes, baseUrl: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, route] of Object.entries(contract).filter(([, one]) => isForPeople(one))) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(name, route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Portal API",
      version: "1",
      description:
        "What the portal's pages call. Signed in by a cookie. Changes are sent with Content-Type: application/json and " +
        "from the portal's own origin (Origin or Sec-Fetch-Site). Every answer carries x-request-id and no-store.",
    },
    servers: [{ url: `${baseUrl}/api` }],
    paths,
    components: {
      securitySchemes: { session: { type: "apiKey", in: "cookie", name: cookieName } },
      schemas: { Error: errorSchema },
    },
  };
}

const errorSchema = Type.Object({
  error: Type.Object({
    message: Type.String({ description: "For display; may change." }),
    type: Type.String(),
    param: Type.Union([Type.String(), Type.Null()], { description: "The first of the details." }),
    code: Type.String({ description: "For program logic." }),
    details: Type.Optional(
      Type.Array(Type.Object({ param: Type.String(), code: Type.String() }), {
        description: "Everything that is wrong with the request.",
      }),
    ),
  }),
});

function operation(operationId: string, route: Route): object {
  const { may, summary, body } = route;
  const isOpen = may.includes("nobody");
  return {
    operationId,
    summary,
    description: isOpen
      ? "Without a session."
      : `For ${may.filter((principal) => principal !== "operator").join(", ")}.`,
    security: isOpen ? [] : [{ session: [] }],
    parameters: [...parameters("path", route.params), ...parameters("query", route.query)],
    ...(body ? { requestBody: { required: true, content: { "application/json": { schema: body } } } } : {}),
    responses: { ...success(route), default: { description: refusalText, content: json({ $ref: errorRef }) } },
  };
}

const errorRef = "#/components/schemas/Error";
const refusalText = `A refusal: ${[...new Set(Object.values(errorAnswers).map(({ code }) => code))].toSorted().join(", ")}`;

function parameters(place: "path" | "query", schema: TObject | undefined): object[] {
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, member]) => ({
    name,
    in: place,
    required: required.has(name),
    schema: member,
  }));
}

function success({ stream, reply, status }: Route): object {
  if (stream) return { 200: { description: "The stream", content: { [stream]: { schema: { type: "string" } } } } };
  if (!reply) return { 204: { description: "Done" } };
  return { [status ?? 200]: { description: "The answer", content: json(reply) } };
}

function json(schema: object): object {
  return { "application/json": { schema } };
}
