/** Tests client libraries in Python. Each gets an answer, and recognises a prompt that is too long. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { lackOfPython, pythonOfTheExamples } from "@weiche/router/test/portal-web/python-of-the-examples.ts";
import { simulated, type Service } from "./client-service.ts";

const runs = promisify(execFile);

export function describePython(service: () => Service): void {
  describe("libraries in Python", () => {
    test(
      "get answers, and recognise a prompt that is too long as an overflow of the context window",
      lackOfPython(),
      async () => {
        const { baseUrl, keys } = service();
        const { stdout } = await runs(pythonOfTheExamples, [join(import.meta.dirname, "python_clients.py")], {
          env: {
            ...process.env,
            ...{ WEICHE_BASE_URL: baseUrl, WEICHE_API_KEY: keys.patient, WEICHE_MODEL: simulated.model },
          },
        });
        const said = stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as object);
        const overflow = "context_length_exceeded";
        expect(said).toEqual([
          { name: "openai", answered: true, overflow },
          { name: "langchain", answered: true, overflow },
          { name: "pydantic-ai", answered: true, overflow },
          { name: "pydantic-ai, structured", answered: true },
          // The first answer is refused by the client's own check, and the second one is taken.
          { name: "instructor, tool_call", asked: 2 },
          { name: "instructor, json_schema_mode", asked: 2 },
          { name: "instructor", overflow },
        ]);
      },
    );
  });
}
