/** Reads the fields of a JSON object. `null` is as good as absent; a wrong type is an error that names the field. */
import { invalid } from "./request-error.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class Fields {
  readonly #values: JsonObject;
  readonly #path: string;

  constructor(value: unknown, path = "") {
    if (!isObject(value)) throw invalid(`${path === "" ? "the body" : path} must be an object`, path);
    this.#values = value;
    this.#path = path;
  }

  name(field: string): string {
    return this.#path === "" ? field : `${this.#path}.${field}`;
  }

  get(field: string): unknown {
    return this.#values[field] ?? undefined;
  }

  number(field: string, minimum: number, maximum: number): number | undefined {
    const value = this.get(field);
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= minimum && value <= maximum) return value;
    throw this.wrong(field, `a number from ${minimum} to ${maximum}`);
  }

  integer(field: string, minimum: number, maximum: number): number | undefined {
    const value = this.get(field);
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum) return value as number;
    throw this.wrong(field, `a whole number from ${minimum} to ${maximum}`);
  }

  boolean(field: string): boolean | undefined {
    return this.#typed<boolean>(field, "boolean");
  }

  string(field: string): string | undefined {
    return this.#typed<string>(field, "string");
  }

  object(field: string): JsonObject | undefined {
    const value = this.get(field);
    if (value === undefined || isObject(value)) return value;
    throw this.wrong(field, "an object");
  }

  array(field: string): readonly unknown[] | undefined {
    const value = this.get(field);
    if (value === undefined || Array.isArray(value)) return value;
    throw this.wrong(field, "an array");
  }

  /** A text or token ids, or an array of such. */
  texts(field: string, maximum: number): readonly (string | readonly number[])[] {
    const value = this.required(field, this.get(field));
    const isTokens = (one: unknown) =>
      Array.isArray(one) && one.length > 0 && one.every((token) => Number.isInteger(token) && token >= 0);
    const texts: unknown[] = Array.isArray(value) && !isTokens(value) ? value : [value];
    const valid = texts.every((one) => (typeof one === "string" && one !== "") || isTokens(one));
    if (valid && texts.length > 0 && texts.length <= maximum) return texts as (string | number[])[];
    throw this.wrong(field, `a text that is not empty, or token ids, or an array of at most ${maximum} such`);
  }

  oneOf<const Word extends string>(field: string, words: readonly Word[]): Word | undefined {
    const value = this.get(field);
    if (value === undefined || words.includes(value as Word)) return value as Word | undefined;
    throw this.wrong(field, `one of ${words.join(", ")}`);
  }

  required<Value>(field: string, value: Value | undefined): Value {
    if (value === undefined) throw invalid(`'${this.name(field)}' is required`, this.name(field));
    return value;
  }

  wrong(field: string, expected: string) {
    return invalid(`'${this.name(field)}' must be ${expected}`, this.name(field));
  }

  #typed<Value>(field: string, type: "boolean" | "string"): Value | undefined {
    const value = this.get(field);
    if (value === undefined || typeof value === type) return value as Value | undefined;
    throw this.wrong(field, `a ${type}`);
  }
}
