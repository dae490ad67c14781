/** Every program calls this first. It imports nothing, so that an older Node.js can load it and report the problem. */

/**
 * The oldest Node.js that runs this code: it needs `Temporal` and `using`, and reads TypeScript without a build step.
 */
const nodeMajorMin = 26;

export function requireNode(program: string, version: string = process.versions.node): void {
  if (Number.parseInt(version, 10) >= nodeMajorMin) return;
  console.error(
    `${program}: Node.js ${nodeMajorMin} is required, but this is ${version}: start with npm, or with node_modules/.bin/node`,
  );
  process.exit(1);
}
