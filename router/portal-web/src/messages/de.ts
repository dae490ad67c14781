/** Die Texte des Portals auf Deutsch. */
import { problems } from "./de/problems.ts";
import { shell } from "./de/shell.ts";
import { signIn } from "./de/sign-in.ts";
import type { Messages } from "./messages.ts";

export const de: Messages = { shell, signIn, problems };
