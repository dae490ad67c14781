/** A Fastify server that forwards all requests with `@fastify/reply-from` as its documentation shows. PORT ENGINE. */
import { fastify } from "fastify";
import replyFrom from "@fastify/reply-from";

const [port, engine] = process.argv.slice(2);
const app = fastify({ bodyLimit: 64 << 20 });
// Bodies are forwarded without parsing.
app.removeAllContentTypeParsers();
app.addContentTypeParser("*", (_request, body, done) => done(null, body));
await app.register(replyFrom, {
  base: `http://127.0.0.1:${engine}`,
  undici: { connections: 20_000, headersTimeout: 0, bodyTimeout: 0 },
});
app.all("/*", (request, reply) => reply.from(request.url));
await app.listen({ port: Number(port), host: "127.0.0.1", backlog: 4096 });
