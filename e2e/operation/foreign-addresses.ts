/** A cluster with the embedded engine, whose requests name a foreign URL in every place where a URL may occur. */
import { join } from "node:path";
import { Cluster } from "../cluster/cluster.ts";

const root = join(import.meta.dirname, "../..");
const model = "tiny-chat";

export async function openCluster(): Promise<Cluster> {
  const engine = {
    model,
    dialect: "openai",
    maxConcurrent: 4,
    directory: root,
    command: [
      ...["node", "node-agent/embedded-engine/src/main.ts", "--model", "node-agent/models/weiche-tiny.gguf"],
      ...["--alias", model, "--port", "{port}"],
    ],
  };
  const entry = {
    ...{ id: model, category: "language", status: "Beta", contextTokens: 4_096 },
    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }],
    images: { max: 4, formats: ["png"] },
  };
  return await Cluster.start({
    catalogue: [entry],
    agents: { "node-1": { slots: [{ name: "a", engines: [engine] }] } },
  });
}

/** Sends all requests. Returns the status of each by its name. */
export async function sendAll(cluster: Cluster, apiKey: string, foreign: string): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  for (const [name, body] of Object.entries(requestsTo(foreign))) {
    const response = await fetch(`${cluster.baseUrl}/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${apiKey}`,
        "content-type": "application/json",
        referer: foreign,
        "x-forwarded-host": new URL(foreign).host,
        forwarded: `host=${new URL(foreign).host}`,
      },
      body: JSON.stringify({ model, max_tokens: 4, ...body }),
    });
    await response.text();
    statuses[name] = response.status;
  }
  return statuses;
}

function requestsTo(foreign: string): Record<string, object> {
  const say = (content: unknown) => ({ messages: [{ role: "user", content }] });
  const image = (url: string) => say([{ type: "image_url", image_url: { url } }]);
  const schema = (inner: object) => ({
    ...say("Hello"),
    response_format: { type: "json_schema", json_schema: { name: "n", schema: inner } },
  });
  const svg = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg"><image href="${foreign}"/></svg>`);
  return {
    "a text": say(`Look at ${foreign}`),
    "an image by its URL": image(foreign),
    "an image by a file URL": image("file:///etc/passwd"),
    "an SVG that names the URL": image(`data:image/svg+xml;base64,${svg.toString("base64")}`),
    "a data URI that ends in the URL": image(`data:image/png;base64,iVBORw0KGgo=${foreign}`),
    "a reference in a schema": schema({ $ref: foreign }),
    "a schema's own id": schema({ $id: foreign, $schema: foreign, type: "object", properties: {} }),
    "a reference in a tool": {
      ...say("Hello"),
      tools: [{ type: "function", function: { name: "f", parameters: { $ref: foreign } } }],
    },
    "an argument of the template": { ...say("Hello"), chat_template_kwargs: { base_url: foreign } },
    "a user": { ...say("Hello"), user: foreign },
  };
}
