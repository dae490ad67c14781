/** api.md and the portal's help page agree, and show the bounds that apply. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { apiErrors } from "@weiche/shared/errors.ts";
import { schemaBounds as agentsBounds } from "../../node-agent/src/engines/dialects/schema-bounds.ts";
import { schemaBounds } from "../../router/portal-web/src/pages/help/schema-bounds.ts";
import { apiFile, apiPage } from "./api-page.ts";

const page = readFileSync(apiFile, "utf8");

test("api.md is fresh (node docs/tools/api-page.ts)", () => {
  expect(apiPage(page)).toBe(page);
});

test("api.md names every status with its code", () => {
  const rows = page.slice(page.indexOf("<!-- begin refusals"), page.indexOf("<!-- end refusals"));
  const missing = Object.values(apiErrors).filter(({ status, type, code }) => {
    const name = code === String(status) ? type : code;
    return !rows.includes(`- ${status} \`${name}\`: `);
  });
  expect(missing).toEqual([]);
});

test("api.md has the bounds on JSON Schemas of the agents' dialects", () => {
  const said = (column: "others" | "vllm") =>
    Object.fromEntries(Object.entries(schemaBounds).map(([name, columns]) => [name, columns[column] ?? Infinity]));
  const { openai, "llama-server": llamaServer, vllm } = agentsBounds;
  for (const [column, bounds] of [
    ["others", openai],
    ["others", llamaServer],
    ["vllm", vllm],
  ] as const)
    expect(said(column)).toEqual({
      size: bounds.sizeMax,
      repetition: bounds.patternRepetitionMax,
      choices: bounds.choicesMax,
      ways: bounds.waysMax,
      tools: bounds.toolsMax,
      levels: bounds.depthMax,
      name: bounds.nameLengthMax,
    });
});
