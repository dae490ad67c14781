/** The portal's texts in German. */
import { keys } from "./de/keys.ts";
import { notices } from "./de/notices.ts";
import { overview } from "./de/overview.ts";
import { problems } from "./de/problems.ts";
import { shell } from "./de/shell.ts";
import { signIn } from "./de/sign-in.ts";
import { start } from "./de/start.ts";
import type { Messages } from "./messages.ts";

export const de: Messages = { keys, notices, overview, problems, shell, signIn, start };
