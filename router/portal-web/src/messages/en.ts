/** The portal's texts in English; the German ones have the same shape. */
import { keys } from "./en/keys.ts";
import { notices } from "./en/notices.ts";
import { overview } from "./en/overview.ts";
import { problems } from "./en/problems.ts";
import { shell } from "./en/shell.ts";
import { signIn } from "./en/sign-in.ts";
import { start } from "./en/start.ts";

export const en = { keys, notices, overview, problems, shell, signIn, start };
