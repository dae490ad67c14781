/** A Python with the clients that the portal's examples import, and with other clients that the same tests use. */
import { spawnSync } from "node:child_process";
import { notRun, type RunOptions } from "@weiche/shared/testing/needs.ts";

const install =
  "python3 -m venv ~/weiche-python && ~/weiche-python/bin/pip install --no-deps -r router/test/portal-web/python-clients.txt";

export const pythonOfTheExamples = process.env["WEICHE_PYTHON"] ?? "python3";

/** Options of a test that runs the examples. */
export function lackOfPython(): RunOptions {
  const imports = ["-c", "import openai, langchain_openai, pydantic_ai, instructor"];
  const { status, error, stderr } = spawnSync(pythonOfTheExamples, imports, { encoding: "utf8" });
  if (status === 0) return {};
  const why = error ? (error as NodeJS.ErrnoException).code : stderr.trim().split("\n").at(-1);
  return notRun(
    `${pythonOfTheExamples} cannot run the examples in Python (${why}): ${install}, then set WEICHE_PYTHON=~/weiche-python/bin/python`,
  );
}
