import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { dataDirectory } from "./data-directory.ts";

test("the variable wins over the file, and without both the directory is `data` in the project, wherever a program starts", () => {
  expect(dataDirectory({ WEICHE_DATA_DIR: "/v" }, "/f")).toBe("/v");
  expect(dataDirectory({ WEICHE_DATA_DIR: "v" }, "/f")).toBe(resolve("v"));
  expect(dataDirectory({}, "/f")).toBe("/f");
  expect(dataDirectory({})).toBe(join(import.meta.dirname, "../../..", "data"));
});
