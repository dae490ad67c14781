/** A process of its own that holds the agent's end of a data connection: begins every answer and ends none. */
import { openAgentEnd } from "./link-ends.ts";

openAgentEnd(Number(process.argv[2]), (stream) => {
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.write("begun");
});
