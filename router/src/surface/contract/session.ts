/** Route of the signed-in person and their allowed actions. */
import { Type } from "typebox";
import { everybody, id, object, orNull, role, type RouteTable } from "./route.ts";

export const sessionContract = {
  session: {
    summary: "Show the signed-in user, their allowed actions and the API's URL",
    may: everybody,
    reply: object({
      user: object({ id, email: Type.String(), role }),
      account: object({ id, name: Type.String() }),
      actions: Type.Array(Type.String(), { description: "Names of the operations that this user's role may call." }),
      language: orNull(Type.Enum(["de", "en"])),
      theme: orNull(Type.Enum(["light", "dark"])),
      apiUrl: Type.String({ description: "Base URL of the API, without /v1." }),
    }),
  },
} as const satisfies RouteTable;
