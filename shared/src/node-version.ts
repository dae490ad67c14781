import { StartError } from "./directory-lock.ts";

/** The oldest Node.js that runs this code: it needs `Temporal` and TypeScript without a build step. */
export const nodeMajorMin = 26;

export function requireNode(version: string = process.versions.node): void {
  if (Number.parseInt(version, 10) >= nodeMajorMin) return;
  throw new StartError(
    `Node.js ${nodeMajorMin} is needed, this is ${version}: start with npm, or with node_modules/.bin/node`,
  );
}
