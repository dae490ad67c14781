/** A release's `weiche` command, which need not search for the right Node.js. */
import { runCli } from "../../router/src/surface/cli/cli.ts";

process.exitCode = await runCli(process.argv.slice(2), process.env);
