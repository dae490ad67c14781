/** The data directory: one rule for router, agent, their commands and `npm start`. */
import { join, resolve } from "node:path";

const project = join(import.meta.dirname, "../../..");

/** `configured`: the directory that the YAML file names, as an absolute path. */
export function dataDirectory(env: NodeJS.ProcessEnv, configured?: string): string {
  return resolve(env["WEICHE_DATA_DIR"] ?? configured ?? join(project, "data"));
}
