/** The signed-in person, and the actions that this person may take. */
import { Type } from "typebox";
import { everybody, id, object, orNull, role, type RouteTable } from "./route.ts";

export const sessionContract = {
  session: {
    summary: "Who is signed in, what they may do, and where the API is",
    may: everybody,
    reply: object({
      user: object({ id, email: Type.String(), role }),
      account: object({ id, name: Type.String() }),
      actions: Type.Array(Type.String(), { description: "Names of the operations that this user's role may call." }),
      language: orNull(Type.Enum(["de", "en"])),
      theme: orNull(Type.Enum(["light", "dark"])),
      apiUrl: Type.String({ description: "Where the API is reached, without /v1." }),
    }),
  },
} as const satisfies RouteTable;
