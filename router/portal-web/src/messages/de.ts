/** The portal's texts in German. */
import { account } from "./de/account.ts";
import { audit } from "./de/audit.ts";
import { changes } from "./de/changes.ts";
import { chat } from "./de/chat.ts";
import { credits } from "./de/credits.ts";
import { invoices } from "./de/invoices.ts";
import { keys } from "./de/keys.ts";
import { models } from "./de/models.ts";
import { notices } from "./de/notices.ts";
import { overview } from "./de/overview.ts";
import { packages } from "./de/package.ts";
import { problems } from "./de/problems.ts";
import { requests } from "./de/requests.ts";
import { settings } from "./de/settings.ts";
import { shell } from "./de/shell.ts";
import { signIn } from "./de/sign-in.ts";
import { start } from "./de/start.ts";
import { usage } from "./de/usage.ts";
import { users } from "./de/users.ts";
import type { Messages } from "./shape.ts";

export const de: Messages = {
  account,
  audit,
  changes,
  chat,
  credits,
  invoices,
  keys,
  models,
  notices,
  overview,
  packages,
  problems,
  requests,
  settings,
  shell,
  signIn,
  start,
  usage,
  users,
};
