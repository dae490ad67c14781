import { expect, test } from "vitest";
import { promptSize } from "./prompt-size.ts";

test("the size of a prompt is its texts and names in bytes, without its images", () => {
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(1_000)}` } };
  const messages = [{ role: "user", content: [{ type: "text", text: "für" }, image] }];
  const names = "role".length + "user".length + "content".length + "type".length + "text".length + "text".length;
  expect(promptSize(messages)).toEqual({ bytes: names + 4 + "type".length + "image_url".length, images: 1 });
});

test("tools count as text, with the names in their schemas", () => {
  expect(promptSize("ab", [{ name: "f", parameters: { properties: { city: {} } } }])).toEqual({
    bytes: 2 + "name".length + 1 + "parameters".length + "properties".length + "city".length,
    images: 0,
  });
});
