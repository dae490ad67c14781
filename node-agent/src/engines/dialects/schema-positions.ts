/** Distinguishes schemas within a JSON Schema from maps of names to schemas, and from data. */

export type SchemaPosition = "schema" | "map" | "data";

const mapWords: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"],
]);
const dataWords: ReadonlySet<string> = new Set(["default", "const", "enum", "examples"]);

/**
 * Returns the position of the member `name` of an object in this position. Items of a list have the list's position.
 */
export function positionWithin(position: SchemaPosition, name: string): SchemaPosition {
  if (position === "data") return "data";
  if (position === "map") return "schema"; // A property may be named `default`.
  if (mapWords.has(name)) return "map";
  return dataWords.has(name) ? "data" : "schema";
}
