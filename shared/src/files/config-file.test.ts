import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { checkYaml, locate, nearest, type Finding } from "./config-file.ts";

const closed = { additionalProperties: false } as const;
const schema = Type.Object(
  {
    catalogue: Type.String(),
    limits: Type.Optional(Type.Object({ perIpPerSecond: Type.Number({ minimum: 0 }) }, closed)),
    slots: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), kind: Type.Optional(Type.Enum(["vllm", "openai"])) }, closed)),
    ),
  },
  closed,
);

describe("a configuration file", () => {
  test("without mistakes is returned as its value", () => {
    expect(checkYaml("catalogue: c.yaml\nlimits: { perIpPerSecond: 3 }", schema)).toEqual({
      value: { catalogue: "c.yaml", limits: { perIpPerSecond: 3 } },
      mistakes: [],
    });
  });

  test("gets the defaults of its missing keys, also in missing sections and in entries of lists", () => {
    const limits = Type.Object({ waiters: Type.Integer({ default: 512 }) }, { ...closed, default: {} });
    const slots = Type.Array(Type.Object({ name: Type.String(), limits }, closed));
    const filled = Type.Object({ slots, limits, file: Type.Optional(Type.String()) }, closed);
    expect(checkYaml("slots: [{ name: a }, { name: b, limits: { waiters: 1 } }]", filled).value).toEqual({
      slots: [
        { name: "a", limits: { waiters: 512 } },
        { name: "b", limits: { waiters: 1 } },
      ],
      limits: { waiters: 512 },
    });
    const wrong = [{ line: 1, message: '"limits.waiters" must be a whole number' }];
    expect(checkYaml("limits: { waiters: many }\nslots: []", filled).mistakes).toEqual(wrong);
  });

  const mistakes: [name: string, text: string, line: number, message: string][] = [
    [
      "an unknown key is answered with the nearest known one",
      "catalogue: c\nlimit: {}",
      2,
      'unknown key "limit"; did you mean "limits"?',
    ],
    [
      "an unknown key without a similar one is answered with all known ones",
      "catalogue: c\nxyz: 1",
      2,
      'unknown key "xyz"; known here: catalogue, limits, slots',
    ],
    [
      "a nested unknown key has its own line",
      "catalogue: c\nlimits:\n  perIpPerSecnd: 2",
      3,
      'unknown key "limits.perIpPerSecnd"; did you mean "perIpPerSecond"?',
    ],
    [
      "a key that is written twice is named at its second line",
      "catalogue: c\nlimits:\n  perIpPerSecond: 1\n  perIpPerSecond: 2",
      4,
      'the key "perIpPerSecond" is written twice',
    ],
    [
      "a key of a flow mapping that is written twice is named",
      "catalogue: c\nlimits: { perIpPerSecond: 1, perIpPerSecond: 2 }",
      2,
      'the key "perIpPerSecond" is written twice',
    ],
    ["a missing key is named", "limits: { perIpPerSecond: 1 }", 1, '"catalogue" is missing'],
    [
      "a wrong type is named with its path",
      "catalogue: c\nslots:\n  - name: 5",
      3,
      '"slots.0.name" must be a text: put it in quotes',
    ],
    [
      "a value out of range is answered with the range",
      "catalogue: c\nlimits:\n  perIpPerSecond: -1",
      3,
      '"limits.perIpPerSecond" must be >= 0',
    ],
    [
      "an unknown choice is answered with all choices",
      "catalogue: c\nslots:\n  - name: x\n    kind: c",
      4,
      '"slots.0.kind" must be one of vllm, openai',
    ],
    [
      "a misspelt choice is answered with the right one",
      "catalogue: c\nslots:\n  - name: x\n    kind: vlm",
      4,
      '"slots.0.kind" must be one of vllm, openai; did you mean "vllm"?',
    ],
  ];
  test.each(mistakes)("%s [G1]", (_name, text, line, message) => {
    expect(checkYaml(text, schema).mistakes).toContainEqual({ line, message });
  });

  test("with broken YAML causes a mistake with its line", () => {
    expect(checkYaml("catalogue: [", schema).mistakes[0]).toMatchObject({ line: 1 });
  });

  test("is checked by further rules only if it matches its schema, and each finding has a line", () => {
    const judge = ({ slots = [] }: { slots?: { name: string }[] }): Finding[] =>
      slots.flatMap(({ name }, index) => (name === "x" ? [[["slots", index, "name"], "x is no name"]] : []));
    const text = "slots:\n  - name: a\n  -\n    kind: vllm\n    name: x\ncatalogue: c";
    expect(checkYaml(text, schema, judge)).toEqual({ mistakes: [{ line: 5, message: "x is no name" }] });
    expect(checkYaml(`${text}\nlimit: 1`, schema, judge).mistakes).toMatchObject([{ line: 7 }]);
  });

  test("gives a missing key the line of the nearest part around it", () => {
    const text = "catalogue: c\nslots:\n  - name: a\n  - name: b\n    kind: vllm";
    const paths: Finding[] = [
      [["slots", 1, "kind"], "last"],
      [["slots", 1, "url"], "missing"],
      [["limits", "perIpPerSecond"], "nowhere"],
    ];
    expect(locate(text, paths)).toEqual([
      { line: 1, message: "nowhere" },
      { line: 4, message: "missing" },
      { line: 5, message: "last" },
    ]);
  });

  test("lacks the required keys if it is empty", () => {
    expect(checkYaml("", schema).mistakes).toEqual([{ line: 1, message: '"catalogue" is missing' }]);
  });
});

test("only a similar word is suggested", () => {
  expect(nearest("dialct", ["dialect", "launcher"])).toBe("dialect");
  expect(nearest("gpu_memory", ["dialect", "launcher"])).toBeUndefined();
});
