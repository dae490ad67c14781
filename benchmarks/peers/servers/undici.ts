/** A minimal Node.js proxy: `node:http` in front, undici's `dispatch` behind, bytes unchanged. PORT ENGINE. */
import { createServer, type ServerResponse } from "node:http";
import { Pool, type Dispatcher } from "undici";

const [port, engine] = process.argv.slice(2).map(Number) as [number, number];
const pool = new Pool(`http://127.0.0.1:${engine}`, { headersTimeout: 0, bodyTimeout: 0, connections: null });

const server = createServer({ keepAlive: true }, (request, response) => {
  const { "content-type": type = "application/json", "content-length": length } = request.headers;
  pool.dispatch(
    {
      ...{ path: request.url!, method: request.method as Dispatcher.HttpMethod, body: request },
      headers: { "content-type": type, ...(length === undefined ? {} : { "content-length": length }) },
    },
    passOn(response),
  );
});
server.keepAliveTimeout = 75_000;
server.listen(port, "127.0.0.1", 4096);

function passOn(response: ServerResponse): Dispatcher.DispatchHandler {
  return {
    onRequestStart(controller) {
      response.once("close", () => {
        if (!response.writableFinished) controller.abort(new Error("the client left"));
      });
    },
    onResponseStart(_controller, status, headers) {
      const [type, length] = [String(headers["content-type"]), headers["content-length"]];
      response.writeHead(status, {
        "content-type": type,
        ...(length === undefined ? {} : { "content-length": String(length) }),
      });
    },
    onResponseData(controller, bytes) {
      if (response.write(bytes)) return;
      controller.pause();
      response.once("drain", () => controller.resume());
    },
    onResponseEnd() {
      response.end();
    },
    onResponseError() {
      response.destroy();
    },
  };
}
