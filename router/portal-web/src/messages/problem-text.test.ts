import { expect, test } from "vitest";
import { Problem } from "../api/problem.ts";
import { createFormat } from "./format.ts";
import { de } from "./de.ts";
import { en } from "./en.ts";
import { problemText } from "./problem-text.ts";

const inEnglish = { t: en, format: createFormat("en") };
const inGerman = { t: de, format: createFormat("de") };

test("a model that cannot start, a model without a server and maintenance are not called busy", () => {
  const text = (code: string) => problemText(new Problem(503, { code, message: "the API's words" }), inEnglish);
  expect(text("overloaded")).toBe(en.problems.busy);
  const others = ["model_unavailable", "no_node_available", "maintenance"].map(text);
  expect(others).toEqual([en.problems.model_unavailable, en.problems.no_node_available, en.problems.maintenance]);
  expect(new Set([...others, en.problems.busy]).size).toBe(4);
});

test("a refusal of the portal has its German sentence, and an unknown one the server's", () => {
  const text = (message: string) => problemText(new Problem(409, { code: "conflict", message }), inGerman);
  expect(text("The user is blocked.")).toBe("Der Benutzer ist gesperrt.");
  expect(text("words of a newer router")).toBe("words of a newer router");
});
