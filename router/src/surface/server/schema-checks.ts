/** How Fastify checks requests by the contract's schemas. */
import type { FastifyServerOptions } from "fastify";

/** A check that AJV has compiled. */
interface Check {
  (value: unknown): unknown;
  errors?: unknown;
}

/**
 * Refuses values that a schema does not allow, and converts nothing. Compiles all schemas at the start, and checks them
 * too.
 */
export const strictly = {
  customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false, useDefaults: false },
} satisfies FastifyServerOptions["ajv"];

/** The compiled checks of this process. Listeners that have a schema in common share its check. */
const checks = new WeakMap<object, Check>();

/**
 * Compiles a schema when the first request needs it, because all schemas of the contract together take an eighth of a
 * router's start. Does not check the schema itself, which would delay that request by 40 ms; a test checks all schemas.
 */
export const schemaChecks = {
  customOptions: { ...strictly.customOptions, validateSchema: false },
  onCreate(ajv) {
    const compile = ajv.compile.bind(ajv) as (schema: object) => Check;
    const later = (schema: object): Check => {
      const check: Check = (value) => {
        const compiled = checks.get(schema) ?? compile(schema);
        checks.set(schema, compiled);
        const isValid = compiled(value);
        check.errors = compiled.errors;
        return isValid;
      };
      return check;
    };
    Object.assign(ajv, { compile: later });
  },
} satisfies FastifyServerOptions["ajv"];
