/** JSON Schemas as clients send them. */

interface UsualSchema {
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

const strict = (properties: object) => ({
  ...{ type: "object", properties, required: Object.keys(properties), additionalProperties: false },
});
const text = { type: "string" };
const matching = (pattern: string) => ({ type: "string", pattern });
const listOf = (items: object) => ({ type: "array", items });
const many = (count: number, make: (index: number) => [string, object]) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => make(index)));

const patterns: Record<string, string> = {
  "a date": String.raw`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$`,
  "a time": "^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$",
  "an e-mail address": String.raw`^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$`,
  "an e-mail address in parts": String.raw`^[^@\s]+@[^@\s]+\.[^@\s]+$`,
  "an IPv4 address": String.raw`^((25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$`,
  "a UUID": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
  "a semantic version": String.raw`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`,
  "a telephone number": String.raw`^\+?[1-9]\d{1,14}$`,
  "a web address": String.raw`^https?://[^\s/$.?#].[^\s]*$`,
  "a path": "^(/[^/]+)+/?$",
  "a slug": "^[a-z0-9]+(-[a-z0-9]+)*$",
  "words with spaces between": "^[A-Z][a-z]+( [A-Z][a-z]+)*$",
  "a colour": "^#?([a-fA-F0-9]{6}|[a-fA-F0-9]{3})$",
  "an amount": String.raw`^-?[0-9]+(\.[0-9]{1,2})?$`,
  "a list of words": "^(GET|POST|PUT|PATCH)(,(GET|POST|PUT|PATCH))*$",
  "any text of limited length": "^.{1,128}$",
  "a word somewhere": "^.*error.*$",
};

const node = { $ref: "#/$defs/node" };
const expression = { $ref: "#/$defs/expression" };
const binary = (kind: string) => strict({ kind: { const: kind }, left: expression, right: expression });

export const usualSchemas: readonly UsualSchema[] = [
  ...Object.entries(patterns).map(([name, pattern]) => ({ name, schema: matching(pattern) })),
  { name: "a calendar event", schema: strict({ name: text, date: text, participants: listOf(text) }) },
  {
    name: "steps of a calculation",
    schema: strict({ steps: listOf(strict({ explanation: text, output: text })), final_answer: text }),
  },
  {
    name: "a page that consists of pages",
    schema: {
      ...strict({
        type: { type: "string", enum: ["div", "button", "header", "section", "field", "form"] },
        label: text,
        children: listOf({ $ref: "#" }),
        attributes: listOf(strict({ name: text, value: text })),
      }),
    },
  },
  {
    name: "a linked list",
    schema: {
      ...strict({ linked_list: node }),
      $defs: { node: strict({ value: { type: "number" }, next: { anyOf: [node, { type: "null" }] } }) },
    },
  },
  {
    name: "a tree, as Pydantic writes it",
    schema: {
      $defs: {
        node: {
          ...{ title: "Node", type: "object", required: ["value"] },
          properties: {
            value: { title: "Value", type: "string" },
            children: { title: "Children", type: "array", items: node, default: [] },
            parent: { anyOf: [node, { type: "null" }], default: null },
          },
        },
      },
      ...node,
    },
  },
  {
    name: "expressions that differ in their kind",
    schema: {
      ...expression,
      $defs: {
        expression: {
          anyOf: [
            ...["add", "subtract", "multiply", "divide"].map(binary),
            strict({ kind: { enum: ["number", "constant"] }, value: { type: "number" } }),
            strict({ call: text, arguments: listOf(expression) }),
          ],
        },
      },
    },
  },
  {
    name: "moderation with categories",
    schema: strict({
      is_violating: { type: "boolean" },
      category: { anyOf: [{ enum: ["violence", "sexual", "self_harm"] }, { type: "null" }] },
      explanation_if_violating: { type: ["string", "null"] },
    }),
  },
  {
    name: "250 values of an enum",
    schema: strict({ country: { type: "string", enum: Array.from({ length: 250 }, (_, at) => word(at)) } }),
  },
  { name: "1,000 values of an enum", schema: { enum: Array.from({ length: 1_000 }, (_, at) => `${word(at)} ${at}`) } },
  {
    name: "an invoice with limits",
    schema: strict({
      id: { type: "string", minLength: 1, maxLength: 64 },
      lines: {
        ...{ type: "array", minItems: 1, maxItems: 200 },
        items: strict({
          text: { type: "string", maxLength: 500 },
          quantity: { type: "integer", minimum: 1, maximum: 10_000 },
          price: { type: "number" },
        }),
      },
      due: { type: "string", format: "date" },
    }),
  },
  { name: "500 properties in a record", schema: strict(many(500, (at) => [`field_${at}`, text])) },
  {
    name: "20 optional properties",
    schema: { type: "object", properties: many(20, (at) => [`p${at}`, text]) },
  },
  {
    name: "an object that is merged from two",
    schema: {
      allOf: [{ $ref: "#/$defs/base" }, strict({ name: text })],
      $defs: { base: strict({ id: { type: "integer" } }) },
    },
  },
  { name: "any object", schema: { type: "object", additionalProperties: true } },
  { name: "a map", schema: { type: "object", additionalProperties: { type: "array", items: { type: "integer" } } } },
];

/** A client's tools: 128 with 20 properties each. */
export const usualTools: readonly UsualSchema[] = Array.from({ length: 128 }, (_, at) => ({
  name: `tool_${at}`,
  schema: {
    type: "object",
    properties: many(20, (index) => [`argument_${index}`, argument(index)]),
    required: ["argument_0", "argument_1"],
  },
}));

function argument(index: number): object {
  const description = `What the argument ${index} of the tool says, in a sentence or two of some length.`;
  const shapes = [text, { type: "integer" }, { type: "boolean" }, listOf(text), { enum: ["low", "medium", "high"] }];
  return { ...shapes[index % shapes.length], description };
}

/** Returns different words with usual beginnings. */
function word(index: number): string {
  const letters = [index % 26, Math.floor(index / 26) % 26, (index * 7) % 26].map((at) => String.fromCharCode(97 + at));
  return `${letters[0]!.toUpperCase()}${letters.slice(1).join("")}land`;
}
