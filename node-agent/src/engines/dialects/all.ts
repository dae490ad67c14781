import type { DialectName } from "../engine.ts";
import type { Dialect } from "./dialect.ts";
import { llamaServer } from "./llama-server.ts";
import { openai } from "./openai.ts";
import { vllm } from "./vllm.ts";

export const dialects: Readonly<Record<DialectName, Dialect>> = { vllm, "llama-server": llamaServer, openai };
