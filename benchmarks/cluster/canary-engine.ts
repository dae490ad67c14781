/** An engine of the convention that answers every request with a canary, or fails with one as the request's text says. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

/** What a request can ask for by a word in its text. */
export const engineFailures = ["refuse", "break-off", "no-stream", "page", "bad-json", "late-error"] as const;

export class CanaryEngine implements AsyncDisposable {
  /** Every body that came, as text. */
  readonly bodies: string[] = [];
  readonly #server: Server;
  readonly #canary: string;

  private constructor(canary: string) {
    this.#canary = canary;
    this.#server = createServer(
      (request, response) => void this.#answer(request, response).catch(() => response.destroy()),
    );
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
    const failure = engineFailures.find((word) => body.includes(`fail:${word}`));
    const error = JSON.stringify({
      error: { message: this.#canary, type: this.#canary, param: this.#canary, code: 400 },
    });
    if (failure === "refuse") return void response.writeHead(400, { "content-type": "application/json" }).end(error);
    if (failure === "page")
      return void response.writeHead(500, { "x-canary": this.#canary }).end(`<h1>${this.#canary}</h1>`);
    if (failure === "no-stream") return void response.end(JSON.stringify({ choices: this.#canary }));
    response.writeHead(200, { "content-type": "text/event-stream", "x-canary": this.#canary });
    if (request.url?.endsWith("/completions") === true && !request.url.includes("chat"))
      return void response.end(events({ choices: [{ index: 0, text: this.#canary, finish_reason: "stop" }], usage }));
    response.write(
      event(this.#delta({ role: "assistant" })) + event(this.#delta({ reasoning_content: `${this.#canary} ` })),
    );
    response.write(event(this.#delta({ content: this.#canary })));
    const call = {
      index: 0,
      id: "call-1",
      type: "function",
      function: { name: "f", arguments: `{"a":"${this.#canary}"}` },
    };
    if (body.includes('"tools"')) response.write(event(this.#delta({ tool_calls: [call] })));
    if (failure === "break-off") return void setTimeout(() => response.destroy(), 20);
    if (failure === "bad-json") return void response.end(`data: {"canary":"${this.#canary}\n\n`);
    if (failure === "late-error") return void response.end(`data: ${error}\n\n`);
    const finish = body.includes('"tools"') ? "tool_calls" : "stop";
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

/** The agent asks for no whole answer but its proof that the engine works. */
const probed = { choices: [{ index: 0, text: "1", finish_reason: "length" }] };
const usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 };

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function events(value: object): string {
  return `${event(value)}data: [DONE]\n\n`;
}
