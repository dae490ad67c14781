/** Images in the messages of a chat. */
import { expect, test } from "vitest";
import { said } from "../../test/intake/said-request.ts";

const image = (url: string) => ({
  messages: [{ role: "user", content: [{ type: "image_url", image_url: { url, detail: "low" } }] }],
});
const images = { max: 2, formats: ["png"] };

test("images must be data URLs, and only vision models accept them, up to their limit [D8 S10.2]", () => {
  const url = "data:image/png;base64,iVBORw0KGgo=";
  expect(said(image(url), { images })["messages"]).toEqual([
    { role: "user", content: [{ type: "image_url", image_url: { url } }] },
  ]);
  expect(() => said(image(url))).toThrow("accepts no images");
  const three = { messages: Array.from({ length: 3 }, () => image(url).messages[0]) };
  expect(() => said(three, { images })).toThrow("at most 2 images");
  for (const link of [
    "https://a.example/x.png",
    "file:///etc/passwd",
    "iVBORw0KGgo=",
    "data:image/png,x",
    " data:image/png;base64,x",
    `http://x/${url}`,
  ])
    expect(() => said(image(link), { images })).toThrow("links are not fetched");
});

test.each([
  "data:image/png;charset=utf-8;base64,",
  "data:image/png;name=a%20b.png;base64,",
  'data:image/png;name="a; b, c.png";x=;base64,',
  "data:application/octet-stream;base64,",
  "DATA:image/PNG;BASE64,",
])("an image with the head %s reaches the engine with a plain head", (head) => {
  const url = "data:image/png;base64,iVBORw0KGgo=";
  expect(said(image(`${head}iVBORw0KGgo=`), { images })["messages"]).toMatchObject([
    { content: [{ image_url: { url } }] },
  ]);
});

const uri = (base64: string) => `data:image/png;base64,${base64}`;
const long = "iVBORw0KGgoA".repeat(100_000);

test.each(["iVBORw0KGgo=", "iVBORw0KGgoAAA==", "iVBORw0KGgoA", long])(
  "an image of valid Base64 is accepted (%#)",
  (base64) => {
    expect(said(image(uri(base64)), { images })["messages"]).toMatchObject([
      { content: [{ image_url: { url: uri(base64) } }] },
    ]);
  },
);

test.each([
  ["an address after it", "iVBORw0KGgo=http://a.example/x"],
  ["an address after the place of its padding", "iVBORw0KGgoAhttp://a.example/x."],
  ["a line break", "iVBORw0K\nGgoA"],
  ["padding within it", "iVBO=w0KGgoA"],
  ["too much padding", "iVBORw0KGgoA===="],
  ["its padding missing", "iVBORw0KGgo"],
  ["nothing", ""],
  ["letters of the URL alphabet", "iVBO_-0KGgoA"],
  ["one wrong character at the end of a megabyte", `${long}AAA!`],
])("an image of Base64 with %s is refused [D8]", (_name, base64) => {
  expect(() => said(image(uri(base64)), { images })).toThrow(
    expect.objectContaining({ kind: "invalid_request", param: "messages[0].content[0].image_url.url" }) as Error,
  );
});
