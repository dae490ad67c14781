import { join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { openApiDocument } from "./openapi.ts";

const document = openApiDocument("https://api.example");

test("the committed document equals the document that the schemas make [S1.14]", async () => {
  const file = join(import.meta.dirname, "../../../docs/openapi.yaml");
  await expect(stringify(document, { aliasDuplicateObjects: false })).toMatchFileSnapshot(file);
});

test("the document contains every endpoint, parameter and status [S1.14]", () => {
  const { paths } = document as { paths: Record<string, { post?: any; get?: any }> };
  expect(Object.keys(paths)).toEqual(["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models"]);
  const { requestBody, responses } = paths["/v1/chat/completions"]!.post;
  expect(Object.keys(requestBody.content["application/json"].schema.properties).sort().join()).toBe(
    "chat_template_kwargs,frequency_penalty,logprobs,max_completion_tokens,max_tokens,messages,model,n,parallel_tool_calls," +
      "presence_penalty,reasoning_effort,response_format,seed,stop,stream,stream_options,temperature,tool_choice,tools,top_logprobs,top_p",
  );
  expect(Object.keys(responses)).toEqual(["200", "400", "401", "403", "413", "429", "500", "503", "504"]);
});

test("the document contains every header with its statuses [S1.14]", () => {
  const { paths, components } = document as { paths: Record<string, Record<string, any>>; components: any };
  const known = Object.keys(components.headers);
  expect(known).toEqual(["x-request-id", "retry-after", "x-should-retry", "www-authenticate"]);
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods)))
    for (const [status, { headers }] of Object.entries<any>(responses)) {
      const also = { "401": ["www-authenticate"], "429": ["retry-after", "x-should-retry"], "503": ["retry-after"] };
      expect(Object.keys(headers)).toEqual(["x-request-id", ...(also[status as keyof typeof also] ?? [])]);
      for (const [name, { $ref }] of Object.entries<any>(headers)) expect($ref).toBe(`#/components/headers/${name}`);
    }
});

test("the document contains the HTML pages for large bodies, the limit per address and unsupported paths [S1.14]", () => {
  const { paths, components } = document as { paths: Record<string, Record<string, any>>; components: any };
  const page = { "text/html": { schema: expect.objectContaining({ type: "string" }) } };
  expect(components.responses.Unsupported).toMatchObject({
    description: expect.stringContaining("403"),
    content: page,
  });
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    expect(responses["503"].content).toMatchObject(page);
    expect(responses["413"]?.content ?? page).toEqual(page);
  }
});
