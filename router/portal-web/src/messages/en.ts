/** The portal's texts in English; the German ones have the same shape. */
import { account } from "./en/account.ts";
import { audit } from "./en/audit.ts";
import { changes } from "./en/changes.ts";
import { chat } from "./en/chat.ts";
import { credits } from "./en/credits.ts";
import { invoices } from "./en/invoices.ts";
import { keys } from "./en/keys.ts";
import { models } from "./en/models.ts";
import { notices } from "./en/notices.ts";
import { overview } from "./en/overview.ts";
import { packages } from "./en/package.ts";
import { problems } from "./en/problems.ts";
import { requests } from "./en/requests.ts";
import { settings } from "./en/settings.ts";
import { shell } from "./en/shell.ts";
import { signIn } from "./en/sign-in.ts";
import { start } from "./en/start.ts";
import { usage } from "./en/usage.ts";
import { users } from "./en/users.ts";

export const en = {
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
