/** Lists all programs of the bench, Weiche first. To add a peer, add a file here (see README.md). */
import { bareRouter } from "./bare-router.ts";
import { haproxy } from "./haproxy.ts";
import { litellm } from "./litellm.ts";
import { llamaSwap } from "./llama-swap.ts";
import { nginx } from "./nginx.ts";
import { hops, replyFrom, undici } from "./node-programs.ts";
import { portkey } from "./portkey.ts";
import type { Program } from "./program.ts";
import { weicheStore } from "./weiche-store.ts";
import { weiche } from "./weiche.ts";

export const programs: readonly Program[] = [
  weiche(
    "weiche",
    "router and agent as in production: checks keys, limits and bodies, rewrites each chunk, counts and records each token, mutual TLS between them",
    { tls: true },
  ),
  weiche("weiche-plain", "the same without TLS between router and agent", { tls: false }),
  weicheStore,
  bareRouter,
  nginx,
  haproxy,
  portkey,
  undici,
  replyFrom,
  litellm,
  llamaSwap,
  hops("h2"),
  hops("h2-tls"),
  hops("h1-tls"),
];
