/** An engine that answers every request with a canary, or fails with a canary as the request's text demands. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

/** Failures that a word in a request's text selects. */
export const engineFailures = ["refuse", "break-off", "no-stream", "page", "bad-json", "late-error"] as const;

export class CanaryEngine implements AsyncDisposable {
  /** The bodies of all requests, as text. */
  readonly bodies: string[] = [];
  readonly #server: Server;
  readonly #canary: string;

  private constructor(canary: string) {
    this.#canary = canary;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(canary: string): Promise<CanaryEngine> {
    const engine = new CanaryEngine(canary);
    engine.#server.listen(0, "127.0.0.1");
    await once(engine.#server, "listening");
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") return void response.end(JSON.stringify({ data: [{ id: "canary" }] }));
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk as string;
    if (!body.includes('"stream":true')) return void response.end(JSON.stringify(probed));
    this.bodies.push(body);
    const canary = this.#canary;
    const failure = engineFailures.find((word) => body.includes(`fail:${word}`));
    const error = JSON.stringify({ error: { message: canary, type: canary, param: canary, code: 400 } });
    if (failure === "refuse") return void response.writeHead(400, { "content-type": "application/json" }).end(error);
    if (failure === "page") return void response.writeHead(500, { "x-canary": canary }).end(`<h1>${canary}</h1>`);
    if (failure === "no-stream") return void response.end(JSON.stringify({ choices: canary }));
    response.writeHead(200, { "content-type": "text/event-stream", "x-canary": canary });
    if (request.url === "/v1/completions")
      return void response.end(events({ choices: [{ index: 0, text: canary, finish_reason: "stop" }], usage }));
    const called = { name: "f", arguments: `{"a":"${canary}"}` };
    const call = { index: 0, id: "call-1", type: "function", function: called };
    const hasTools = body.includes('"tools"');
    response.write(event(this.#delta({ role: "assistant" })));
    response.write(event(this.#delta({ reasoning_content: `${canary} ` })) + event(this.#delta({ content: canary })));
    if (hasTools) response.write(event(this.#delta({ tool_calls: [call] })));
    if (failure === "break-off") return void setTimeout(() => response.destroy(), 20);
    if (failure === "bad-json") return void response.end(`data: {"canary":"${canary}\n\n`);
    if (failure === "late-error") return void response.end(`data: ${error}\n\n`);
    const finish = hasTools ? "tool_calls" : "stop";
    response.end(events({ choices: [{ index: 0, delta: {}, finish_reason: finish }], usage }));
  }

  #delta(delta: object): object {
    return { id: this.#canary, model: this.#canary, choices: [{ index: 0, delta, finish_reason: null }] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** The answer to the agent's probe, which is its only request without a stream. */
const probed = { choices: [{ index: 0, text: "1", finish_reason: "length" }] };
const usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 };

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function events(value: object): string {
  return `${event(value)}data: [DONE]\n\n`;
}
