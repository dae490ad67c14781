import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { loadTexts, TextsContext } from "../../messages/messages.ts";
import Markdown from "./markdown.tsx";

const texts = await loadTexts("en");
const shown = (text: string) =>
  renderToStaticMarkup(createElement(TextsContext, { value: texts }, createElement(Markdown, { text }))).replace(
    /^<div class="markdown">(.*)<\/div>$/s,
    "$1",
  );

test("HTML of an answer is shown as text", () => {
  const inline = `a <img src=x onerror="alert(1)"> &lt;b&gt; <script>alert(1)</script>`;
  const html = shown(`${inline}\n\n<iframe src="https://example.com"></iframe>\n\n<div\nonclick=x>`);
  expect(html.match(/<[a-z]+/g)).toEqual(["<p"]);
  expect(html).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &lt;b&gt;");
  expect(html).toContain("&lt;iframe");
});

test("links lead to the web only, and images are links", () => {
  const hostile = [
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,x",
    "/api/session",
    "//example.com",
    "vbscript:x",
  ];
  for (const href of hostile) expect(shown(`[x](${href}) ![y](${href})`)).not.toMatch(/<a|<img|href/);
  expect(shown("[x](https://example.com/a?b=1&c)")).toBe(
    '<p><a href="https://example.com/a?b=1&amp;c" target="_blank" rel="noopener noreferrer">x</a></p>',
  );
  expect(shown("![y](https://example.com/y.png)")).toContain('<a href="https://example.com/y.png"');
  expect(shown("![y](https://example.com/y.png)")).not.toContain("<img");
});

test("code, lists, tables and emphasis have their elements", () => {
  expect(shown("```js\na < b\n```")).toMatch(/<span class="soft">js<\/span>.*<pre [^>]*>a &lt; b<\/pre>/);
  expect(shown("- a\n  1. **b**\n- [x] `c<`")).toBe(
    '<ul><li>a<ol start="1"><li><strong>b</strong></li></ol></li><li>☑ <code>c&lt;</code></li></ul>',
  );
  expect(shown("| a | b |\n|---|--:|\n| 1 | *2* |")).toMatch(
    /<table>.*<th>a<\/th><th class="end">b<\/th>.*<td>1<\/td><td class="end"><em>2<\/em><\/td>/,
  );
  expect(shown("## a")).toBe('<p class="heading level-2">a</p>');
});

test("a text that is still being written is shown", () => {
  const text = "# a\n\n```js\nlet x = `1`;\n```\n\n- b\n  - **c** [d](https://example.com)\n\n| e |\n|---|\n| f |";
  for (let end = 0; end <= text.length; end++) expect(() => shown(text.slice(0, end))).not.toThrow();
});
