/** nginx as a reverse proxy with one worker, kept connections to the engine, no buffering and no access log. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ofSystem, peer } from "./child.ts";

export const nginx = peer({
  ...{
    name: "nginx",
    what: "reverse proxy in C, one worker: passes bytes on and knows no keys, limits or tokens, so it shows the least that a proxy costs",
  },
  ...ofSystem("nginx", "-v"),
  install: "apt-get install nginx-light",
  configure(port, { port: engine, directory }) {
    const file = join(directory, "nginx.conf");
    writeFileSync(file, configuration(directory, port, engine));
    return ["-c", file, "-e", join(directory, "error.log")];
  },
});

function configuration(home: string, port: number, engine: number): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (what) => `${what}_temp_path ${home}/${what};`,
  );
  return `daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
worker_rlimit_nofile 65536;
events { worker_connections 32768; }
http {
  access_log off; ${temporary.join(" ")}
  client_max_body_size 64m; client_body_buffer_size 32m; keepalive_requests 1000000000;
  upstream engine { server 127.0.0.1:${engine}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 3600s;
    }
  }
}
`;
}
