/**
 * What the JSON Schemas of one request may cost an engine of a kind. The numbers keep the stall of other streams under
 * 250 ms; what was measured: deploy/decisions/0014-what-a-schema-may-cost.md.
 */
import type { DialectName } from "../engine.ts";

export type MergedLiterals = "none" | "plain words" | "all";

export interface SchemaBounds {
  /** Characters of the grammars that all schemas of a request unfold to; a repetition counts ten for each time. */
  readonly sizeMax: number;
  /** Ways in which an answer can go on at one place. An engine tries its whole vocabulary against each of them. */
  readonly choicesMax: number;
  /** Where a call begins, each tool is a way to go on; the names of most tell them apart soon. */
  readonly toolsMax: number;
  /** Ways in which a pattern can match one text of 64 characters. */
  readonly waysMax: number;
  /** Which values of an `enum` are one way to go on as long as they begin alike; each is one of its own otherwise. */
  readonly merges: { readonly tool: MergedLiterals; readonly answer: MergedLiterals };
  /** Schemas within schemas, references followed. */
  readonly depthMax: number;
  /** Bytes of a schema that are copied once for each different reference in it. */
  readonly copiedBytesMax: number;
  /** Characters of a property's name. */
  readonly nameLengthMax: number;
  /** Places that are looked at before all this is known: bounds the check itself. */
  readonly stepsMax: number;
}

const llamaServer: SchemaBounds = {
  sizeMax: 1_000_000,
  choicesMax: 48,
  toolsMax: 128,
  waysMax: 5_000,
  merges: { tool: "none", answer: "plain words" },
  depthMax: 100,
  copiedBytesMax: 20_000_000,
  nameLengthMax: 256,
  stepsMax: 40_000,
};

/** The embedded engine is reached as one of these: the same grammars, but it puts literals together itself. */
const openai: SchemaBounds = { ...llamaServer, merges: { tool: "all", answer: "all" } };

/** Its token masks are made while a grammar is compiled, beside the loop that generates: ways to go on cost little later. */
const vllm: SchemaBounds = { ...openai, choicesMax: 500, toolsMax: 500 };

export const schemaBounds: Readonly<Record<DialectName, SchemaBounds>> = { "llama-server": llamaServer, openai, vllm };
