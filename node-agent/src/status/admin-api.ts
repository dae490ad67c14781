/** The agent's own admin API for `weiche-agent`: HTTP and JSON over the Unix socket in the state directory. */
import { createServer, type IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { listenOnSocket, type AdminAnswer } from "@weiche/shared/program/admin-socket.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { logLevels, logLevelSecondsMax, type LogLevel, type LogLevelSwitch } from "@weiche/shared/program/log-level.ts";
import { closeServer } from "@weiche/shared/program/ops-server.ts";
import type { ProfileState } from "../profile/profile-run.ts";
import type { AgentStatus } from "./status.ts";

interface AgentControl {
  status(): Promise<AgentStatus>;
  /** Returns false if no slot of the node serves the model. */
  prewarm(model: ModelId): boolean;
  setMaintenance(on: boolean): void;
  /** Returns why the model cannot be measured now, or undefined if it begins. `whileServing`: even if requests run. */
  beginProfile(model: ModelId, whileServing: boolean): string | undefined;
  profile(): ProfileState;
  stopProfile(): void;
  readonly logLevel: Pick<LogLevelSwitch, "state" | "set">;
}

export async function openAdminApi(socketPath: string, control: AgentControl): Promise<AsyncDisposable> {
  const server = createServer((request, response) => {
    void answer(request, control)
      .catch((): AdminAnswer => ({ status: 500, body: { error: "the agent failed to do this" } }))
      .then(({ status, body }) =>
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
      );
  });
  await listenOnSocket(server, socketPath);
  return {
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

async function answer(request: IncomingMessage, control: AgentControl): Promise<AdminAnswer> {
  switch (`${request.method} ${request.url}`) {
    case "GET /status":
      return { status: 200, body: await control.status() };
    case "POST /prewarm": {
      const { model } = await bodyOf(request);
      if (typeof model !== "string") return notUnderstood;
      if (control.prewarm(asId<ModelId>(model))) return { status: 200, body: { model, prewarm: true } };
      return { status: 404, body: { error: `no slot of this node serves ${JSON.stringify(model)}` } };
    }
    case "POST /maintenance": {
      const { on } = await bodyOf(request);
      if (typeof on !== "boolean") return notUnderstood;
      control.setMaintenance(on);
      return { status: 200, body: { maintenance: on } };
    }
    case "POST /profile": {
      const { model, whileServing } = await bodyOf(request);
      if (typeof model !== "string") return notUnderstood;
      const reason = control.beginProfile(asId<ModelId>(model), whileServing === true);
      return reason === undefined ? { status: 200, body: control.profile() } : { status: 409, body: { error: reason } };
    }
    case "GET /profile":
      return { status: 200, body: control.profile() };
    case "POST /profile/stop":
      control.stopProfile();
      return { status: 200, body: control.profile() };
    case "GET /log":
      return { status: 200, body: control.logLevel.state };
    case "POST /log": {
      const { level, seconds } = await bodyOf(request);
      if (!logLevels.includes(level as LogLevel) || typeof seconds !== "number") return notUnderstood;
      if (!(seconds >= 1 && seconds <= logLevelSecondsMax)) return notUnderstood;
      return { status: 200, body: control.logLevel.set(level as LogLevel, seconds) };
    }
    default:
      return { status: 404, body: { error: "unknown command" } };
  }
}

const notUnderstood: AdminAnswer = { status: 400, body: { error: "the request is malformed" } };

/** Returns an empty object if the body is not a JSON object. */
async function bodyOf(request: IncomingMessage): Promise<Json> {
  const body: unknown = await json(request).catch(() => undefined);
  return isObject(body) ? body : {};
}
