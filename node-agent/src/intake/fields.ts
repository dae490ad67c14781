/**
 * Reads single fields of a request body. A wrong one is refused, never clamped or converted, and its value is never
 * quoted; `null` is the same as absent. The router has looked at all of this: here it is the last guard of the engine.
 */
import { ApiError } from "@weiche/shared/errors.ts";
import { isObject, type Json } from "../engines/dialects/json.ts";

export function refuse(param: string, must: string): never {
  throw new ApiError("invalid_request", `Invalid '${param}': must be ${must}.`, { param });
}

export function asObject(value: unknown, param: string): Json {
  return isObject(value) ? value : refuse(param, "an object");
}

export function asText(value: unknown, param: string): string {
  return typeof value === "string" ? value : refuse(param, "a string");
}

export function asList(value: unknown, param: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(param, "an array");
}

export function asOneOf<const T extends string>(value: unknown, param: string, allowed: readonly T[]): T {
  return allowed.includes(value as T) ? (value as T) : refuse(param, `one of ${allowed.join(", ")}`);
}

/** Reads a field that may be absent. */
export function optional<T>(of: Json, name: string, read: (value: unknown, param: string) => T): T | undefined {
  const value = of[name];
  return value == null ? undefined : read(value, name);
}

export function flag(of: Json, name: string): boolean | undefined {
  return optional(of, name, (value) => (typeof value === "boolean" ? value : refuse(name, "true or false")));
}

export function number(of: Json, name: string, min: number, max: number): number | undefined {
  return optional(of, name, (value) =>
    typeof value === "number" && value >= min && value <= max ? value : refuse(name, `a number from ${min} to ${max}`),
  );
}

export function integer(of: Json, name: string, min: number, max: number): number | undefined {
  return optional(of, name, (value) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? (value as number)
      : refuse(name, `an integer from ${min} to ${max}`),
  );
}
