import { fastify, type FastifyServerOptions } from "fastify";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { contract } from "../contract/contract.ts";
import { object, type Route, type Routes } from "../contract/route.ts";
import { addRoutes } from "./add-routes.ts";
import { asRequestError, errorAnswers } from "./error-answers.ts";
import { asOperated } from "./operated.ts";
import { schemaChecks, strictly } from "./schema-checks.ts";

type Served = (route: Route) => Route | undefined;

/** A server with these routes, whose handlers answer with their body. */
async function serverOf(routes: Routes, ajv: FastifyServerOptions["ajv"], serve: Served = (route) => route) {
  const app = fastify({ ajv: ajv! });
  const handlers = Object.fromEntries(Object.keys(routes).map((name) => [name, ({ body }: { body: unknown }) => body]));
  addRoutes(app, routes, handlers as never, {
    serve,
    admit: () => ({ session: undefined, origin: {} as never, address: "" }),
    answerTo(error) {
      const { kind, details } = asRequestError(error) ?? { kind: undefined, details: [] };
      return { status: kind ? errorAnswers[kind].status : 500, headers: {}, body: { details } };
    },
  });
  await app.ready();
  return app;
}

const route = {
  ...{ method: "POST", path: "/things", summary: "", may: ["nobody"] },
  body: object({ count: Type.Integer({ minimum: 1 }) }),
  reply: object({}),
} as const satisfies Route;

test.each<[string, Served]>([
  ["browsers", (each) => each],
  ["operators", asOperated],
])("every schema of the contract for %s compiles", async (_whom, serve) => {
  await using app = await serverOf(contract, strictly, serve);
  expect(app.hasRoute({ method: "GET", url: "/keys" })).toBe(true);
});

test("a wrong schema is found when all are compiled", async () => {
  const wrong = { things: { ...route, body: object({ count: Type.Integer({ minimum: "one" as never }) }) } };
  await expect(serverOf(wrong, strictly)).rejects.toThrow("schema is invalid");
});

test("a schema is compiled by its first request, once for all servers, and each server reports its own mistakes", async () => {
  const compiled: unknown[] = [];
  const counted: FastifyServerOptions["ajv"] = {
    ...schemaChecks,
    onCreate(ajv) {
      const compile = ajv.compile.bind(ajv);
      Object.assign(ajv, { compile: (schema: object) => (compiled.push(schema), compile(schema)) });
      schemaChecks.onCreate(ajv);
    },
  };
  await using first = await serverOf({ things: route }, counted);
  await using second = await serverOf({ things: route }, counted);
  expect(compiled).not.toContain(route.body);
  const send = (app: typeof first, payload: object) => app.inject({ method: "POST", url: "/things", payload });
  for (const app of [first, second, first]) {
    expect((await send(app, { count: 2 })).json()).toEqual({ count: 2 });
    const refused = await send(app, { count: "2", more: 1 });
    expect(refused.statusCode).toBe(400);
    expect(refused.json().details).toEqual([
      { param: "more", code: "unknown" },
      { param: "count", code: "wrong_type" },
    ]);
    expect((await send(app, {})).json().details).toEqual([{ param: "count", code: "missing" }]);
  }
  expect(compiled.filter((schema) => schema === route.body)).toHaveLength(1);
});
