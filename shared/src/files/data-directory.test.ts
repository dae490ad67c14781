import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { dataDirectory } from "./data-directory.ts";

test("the variable wins over the file; without both it is data in the project, wherever a program is started", () => {
  expect(dataDirectory({ WEICHE_DATA_DIR: "/v" }, "/f")).toBe("/v");
  expect(dataDirectory({ WEICHE_DATA_DIR: "v" }, "/f")).toBe(resolve("v"));
  expect(dataDirectory({}, "/f")).toBe("/f");
  expect(dataDirectory({})).toBe(join(import.meta.dirname, "../../..", "data"));
});
