/** A Python with the clients that the portal's examples in Python import. */
import { spawnSync } from "node:child_process";

const install =
  "python3 -m venv ~/weiche-python && ~/weiche-python/bin/pip install -r router/test/portal-web/python-clients.txt";

/** Returns the program's path. Throws, with what to install, where there is none. */
export function pythonOfTheExamples(): string {
  const program = process.env["WEICHE_PYTHON"] ?? "python3";
  const { status, error, stderr } = spawnSync(program, ["-c", "import openai, langchain_openai"], { encoding: "utf8" });
  if (status === 0) return program;
  const why = error ? (error as NodeJS.ErrnoException).code : stderr.trim().split("\n").at(-1);
  throw new Error(
    `cannot run the examples in Python with ${program} (${why}); run ${install} and set WEICHE_PYTHON=~/weiche-python/bin/python`,
  );
}
