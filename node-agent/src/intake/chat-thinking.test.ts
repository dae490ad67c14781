import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { expect, test } from "vitest";
import { plain, said } from "../../test/intake/said-request.ts";

const defaultOn = {
  mode: "default-on",
  efforts: ["none", "low", "medium", "xhigh"],
  default: "xhigh",
  templateKwargsAccepted: true,
} as const;
const optional = { mode: "optional", efforts: [], templateKwargsAccepted: true } as const;
const on = { enable_thinking: true, thinking: true };
const off = { enable_thinking: false, thinking: false };

const thinking: [
  name: string,
  rules: ModelRules["reasoning"],
  body: object,
  effort: string | undefined,
  kwargs: object | undefined,
][] = [
  ["on by default [S7.8]", defaultOn, {}, "xhigh", on],
  ["on by default, with less effort", defaultOn, { reasoning_effort: "low" }, "low", on],
  ["on by default, off by effort", defaultOn, { reasoning_effort: "none" }, "none", off],
  ["on by default, off by switch", defaultOn, { chat_template_kwargs: { enable_thinking: false } }, "none", off],
  [
    "on by default, and the switch takes precedence",
    defaultOn,
    { reasoning_effort: "none", chat_template_kwargs: { enable_thinking: true } },
    "xhigh",
    on,
  ],
  ["optional, not requested", optional, {}, "none", off],
  ["optional, by effort low [S7.9]", optional, { reasoning_effort: "low" }, "low", on],
  ["optional, by effort medium [S7.9]", optional, { reasoning_effort: "medium" }, "medium", on],
  ["optional, by effort high [S7.9]", optional, { reasoning_effort: "high" }, "high", on],
  ["optional, by an effort that no engine knows [S7.9]", optional, { reasoning_effort: "extreme" }, "medium", on],
  ["optional, by an empty effort", optional, { reasoning_effort: "" }, "medium", on],
  ["optional, off by effort [S7.9]", optional, { reasoning_effort: "none" }, "none", off],
  ["optional, by switch", optional, { chat_template_kwargs: { enable_thinking: true } }, undefined, on],
  [
    "optional, by a switch that the service does not document",
    optional,
    { chat_template_kwargs: { thinking: true } },
    "none",
    off,
  ],
  [
    "by effort alone",
    { ...defaultOn, templateKwargsAccepted: false },
    { reasoning_effort: "medium" },
    "medium",
    undefined,
  ],
  [
    "off if none is not an effort of the model",
    { ...defaultOn, efforts: ["low"], default: "low" },
    { chat_template_kwargs: { enable_thinking: false } },
    undefined,
    off,
  ],
  [
    "unavailable",
    plain.reasoning,
    { reasoning_effort: "high", chat_template_kwargs: { enable_thinking: true } },
    undefined,
    off,
  ],
  ["unavailable, and no switch", { ...plain.reasoning, templateKwargsAccepted: false }, {}, undefined, undefined],
];
test.each(thinking)("thinking: %s [S7.2 S7.3]", (_name, reasoning, body, effort, kwargs) => {
  const { reasoning_effort, chat_template_kwargs } = said(body, { reasoning });
  expect({ reasoning_effort, chat_template_kwargs }).toEqual({
    reasoning_effort: effort,
    chat_template_kwargs: kwargs,
  });
});

test("llama-server's templates get the switch even if clients may not set it [S7.3]", () => {
  for (const reasoning of [plain.reasoning, { ...plain.reasoning, templateKwargsAccepted: false }])
    expect(said({}, { reasoning }, "llama-server")).toMatchObject({ chat_template_kwargs: off });
});

test("an effort that the model does not know, and a switch that it does not accept, are refused", () => {
  expect(() => said({ reasoning_effort: "high" }, { reasoning: defaultOn })).toThrow("one of none, low, medium, xhigh");
  const rejected = { ...plain.reasoning, templateKwargsAccepted: false };
  expect(() => said({ chat_template_kwargs: {} }, { reasoning: rejected })).toThrow(
    "Invalid 'chat_template_kwargs': is not accepted by this model.",
  );
});
