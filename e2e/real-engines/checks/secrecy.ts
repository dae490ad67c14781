/** Searches all files for prompts and schemas. Runs last, because the other checks write the files. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Check } from "../check.ts";
import { canary } from "../service.ts";
import { who } from "./answers.ts";

export const secrecy: readonly Check[] = [
  {
    name: "nothing of prompts and schemas is in any file, engines' logs included",
    async run(service) {
      const properties = { [canary]: { type: "string", pattern: `^${canary}(?!x)$` } };
      const schema = { type: "object", properties, required: [canary] };
      for (const type of ["object", "nonsense"]) {
        const format = { type: "json_schema", json_schema: { name: "answer", schema: { ...schema, type } } };
        await service.chat(`${who} ${canary}`, { response_format: format, max_tokens: 20 });
      }
      const files = readdirSync(service.agentDirectory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name));
      const telling = files.filter((file) => readFileSync(file).includes(canary));
      expect(
        telling.length === 0,
        "no file with it",
        telling.map((file) => file.slice(service.agentDirectory.length)),
      );
      const said = [...service.cluster.agents.values()].flatMap(({ output }) => output);
      expect(!said.some((line) => line.includes(canary)), "no line of the agent's log with it");
      return `${files.length} files looked through`;
    },
  },
];
