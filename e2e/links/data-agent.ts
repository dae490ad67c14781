/** Runs the agent's end of a data connection as a process. It begins every answer and ends none. */
import { byHand, openAgentEnd } from "./link-ends.ts";

openAgentEnd(
  Number(process.argv[2]),
  byHand((stream) => {
    stream.begin();
    stream.frames.write("begun");
  }),
);
