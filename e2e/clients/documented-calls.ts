/** Runs the calls of docs/calls.md like its readers do, against the simulated engine. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { lackOfPython, pythonOfTheExamples } from "@weiche/router/test/portal-web/python-of-the-examples.ts";
import type { Service } from "./client-service.ts";

const runs = promisify(execFile);
const page = readFileSync(join(import.meta.dirname, "../../docs/calls.md"), "utf8");

interface Call {
  readonly subject: string;
  readonly code: string;
  /** The answer that the page shows. Empty for programs. */
  readonly answer: string;
}

/** `language` is the language of the fence. The block after a call in `bash` is its answer. */
function callsIn(language: "bash" | "python" | "ts"): readonly Call[] {
  return page.split(/^## /m).flatMap((section) => {
    const blocks = [...section.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, name, code]) => ({
      name,
      code: code!,
    }));
    const subject = section.slice(0, section.indexOf("\n"));
    return blocks.flatMap(({ name, code }, index) =>
      name === language ? [{ subject, code, answer: language === "bash" ? blocks[index + 1]!.code : "" }] : [],
    );
  });
}

export function describeCalls(service: () => Service): void {
  describe("the page of calls", () => {
    const run = async (program: string, ...args: string[]): Promise<string> => {
      const { baseUrl, keys } = service();
      const env = { ...process.env, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: keys.patient };
      return (await runs(program, args, { env })).stdout;
    };

    test.each(callsIn("bash"))("shows the answer that curl gets: $subject", async ({ code, answer }) => {
      // The simulated engine reasons only on request.
      const steered = code.replace("Is 91 a", "sim:reasoning=3 Is 91 a");
      expect(shapesOf(await run("bash", "-c", steered))).toEqual(shapesOf(answer));
    });

    test.each(callsIn("ts"))("shows programs in TypeScript that run: $subject", async ({ code }) => {
      const file = join(import.meta.dirname, `documented-${process.pid}.ts`);
      writeFileSync(file, code);
      try {
        expect(await run(process.execPath, file)).toMatch(/\S/);
      } finally {
        rmSync(file);
      }
    });

    // One process runs all programs, because importing the client takes most of the time.
    test("shows programs in Python that run", lackOfPython(), async () => {
      const programs = callsIn("python").map(({ code }) => code);
      const runAll = "import sys\nfor code in sys.argv[1:]: exec(code, {}); print('---')";
      const outputs = (await run(pythonOfTheExamples, "-c", runAll, ...programs)).split("---\n").slice(0, -1);
      expect(outputs.map((output) => /\S/.test(output))).toEqual(programs.map(() => true));
    });
  });
}

/** Returns the shape of one JSON text, or of each event of a stream. */
function shapesOf(text: string): readonly unknown[] {
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);
  return (events.length > 0 ? events : [text]).map((data) => (data === "[DONE]" ? data : shapeOf(JSON.parse(data))));
}

/** Returns the names of a value with the type of each member. A list of numbers becomes one word. */
function shapeOf(value: unknown): unknown {
  if (value === null) return null;
  if (Array.isArray(value)) return typeof value[0] === "number" ? "numbers" : value.map(shapeOf);
  if (typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}
