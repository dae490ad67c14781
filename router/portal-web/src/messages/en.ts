/** The portal's texts in English; the German ones have the same shape. */
import { problems } from "./en/problems.ts";
import { shell } from "./en/shell.ts";
import { signIn } from "./en/sign-in.ts";

export const en = { shell, signIn, problems };
