/**
 * Limits on the cost of one request's JSON Schemas, for each dialect. They keep the delay of other streams under 250
 * ms. Measurements: docs/decisions/0014-what-a-schema-may-cost.md.
 */
import type { DialectName } from "../engine.ts";

export type MergedLiterals = "none" | "plain words" | "all";

export interface SchemaBounds {
  /** Characters of the grammars that all schemas of a request expand to. */
  readonly sizeMax: number;
  /** Characters that count for each time that a pattern repeats something. */
  readonly patternRepetitionSize: number;
  /** Characters that count for a number with a bound. */
  readonly rangeSize: number;
  /** Characters that count for a `format`. */
  readonly formatSize: number;
  /** The highest count of a repetition in the pattern of an answer or of a required call. */
  readonly patternRepetitionMax: number;
  /** Alternatives at one position of an answer. An engine checks its whole vocabulary against each of them. */
  readonly choicesMax: number;
  /** The most tools. Each is an alternative at the beginning of a call, until their names distinguish them. */
  readonly toolsMax: number;
  /**
   * The most optional properties of one object in an optional tool. A tool with more gets its light form, if it has
   * one. Infinite if the tool becomes no grammar.
   */
  readonly optionalPropertiesMax: number;
  /**
   * The most properties of a tool in its light form. If a template writes each argument in tags, llama.cpp tries each
   * property where an argument begins.
   */
  readonly lightPropertiesMax: number;
  /** Ways in which a pattern can match one text of 64 characters. */
  readonly waysMax: number;
  /** Which `enum` values count as one alternative while they share a prefix. Others count one each. */
  readonly merges: { readonly tool: MergedLiterals; readonly answer: MergedLiterals };
  readonly depthMax: number;
  /** The size of a schema in bytes times the number of different references in it, because each gets a copy. */
  readonly copiedBytesMax: number;
  readonly nameLengthMax: number;
  /** The positions that the check visits. This limits the check itself. */
  readonly stepsMax: number;
}

const llamaServer: SchemaBounds = {
  sizeMax: 1_000_000,
  patternRepetitionSize: 10,
  rangeSize: 400,
  formatSize: 0,
  patternRepetitionMax: Infinity,
  choicesMax: 48,
  toolsMax: 128,
  optionalPropertiesMax: 6,
  lightPropertiesMax: 64,
  waysMax: 5_000,
  merges: { tool: "none", answer: "plain words" },
  depthMax: 100,
  copiedBytesMax: 20_000_000,
  nameLengthMax: 256,
  stepsMax: 40_000,
};

/**
 * The embedded engine uses this dialect: the same grammars as llama-server, but it merges literals itself. Its calls are
 * JSON with every template, so the properties of a light tool cost it nothing.
 */
const openai: SchemaBounds = { ...llamaServer, merges: { tool: "all", answer: "all" }, lightPropertiesMax: 500 };

/**
 * vLLM computes token masks when it compiles a grammar, outside its loop, so alternatives cost little later. Its front
 * blocks all streams while it checks a schema, and patterns, limits and formats cost more there than names. A pattern
 * that repeats something more than 128 times ends in a 500 of its compiler, after a time that grows with the square of
 * the count.
 */
const vllm: SchemaBounds = {
  ...openai,
  sizeMax: 500_000,
  patternRepetitionSize: 30,
  rangeSize: 2_000,
  formatSize: 2_000,
  patternRepetitionMax: 128,
  choicesMax: 500,
  toolsMax: 500,
  optionalPropertiesMax: Infinity,
};

export const schemaBounds: Readonly<Record<DialectName, SchemaBounds>> = { "llama-server": llamaServer, openai, vllm };
