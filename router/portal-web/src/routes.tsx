/** The pages and their paths, in the order of the navigation. */
import { pageRoute, type PageRoute, type SignedInRoute } from "./shell/page-route.ts";

export const publicRoutes: readonly PageRoute[] = [
  pageRoute("/invitation", () => import("./pages/sign-in/invitation-page.tsx")),
  pageRoute("/reset", () => import("./pages/sign-in/reset-page.tsx")),
  pageRoute("/forgotten", () => import("./pages/sign-in/forgotten-page.tsx")),
  pageRoute("/confirm", () => import("./pages/sign-in/confirm-page.tsx")),
  pageRoute("/registration", () => import("./pages/sign-in/registration-page.tsx")),
];

export const signedInRoutes: readonly SignedInRoute[] = [
  {
    ...pageRoute("/", () => import("./pages/overview/overview-page.tsx")),
    ...{ name: "overview", icon: "overview", needs: "showCredits" },
  },
  {
    ...pageRoute("/keys", () => import("./pages/keys/keys-page.tsx")),
    ...{ name: "keys", icon: "keys", needs: "listKeys" },
  },
  {
    ...pageRoute("/usage", () => import("./pages/usage/usage-page.tsx")),
    ...{ name: "usage", icon: "usage", needs: "showUsage" },
  },
  {
    ...pageRoute("/requests", () => import("./pages/requests/requests-page.tsx")),
    ...{ name: "requests", icon: "requests", needs: "listRequests" },
  },
  {
    ...pageRoute("/models", () => import("./pages/models/models-page.tsx")),
    ...{ name: "models", icon: "models", needs: "listModels" },
  },
  {
    ...pageRoute("/chat", () => import("./pages/chat/chat-page.tsx")),
    ...{ name: "chat", icon: "chat", needs: "chat" },
  },
  {
    ...pageRoute("/package", () => import("./pages/package/package-page.tsx")),
    ...{ name: "package", icon: "package", needs: "showPackage" },
  },
  {
    ...pageRoute("/invoices", () => import("./pages/invoices/invoices-page.tsx")),
    ...{ name: "invoices", icon: "invoices", needs: "listInvoices" },
  },
  {
    ...pageRoute("/users", () => import("./pages/users/users-page.tsx")),
    ...{ name: "users", icon: "users", needs: "listUsers" },
  },
  {
    ...pageRoute("/settings", () => import("./pages/settings/settings-page.tsx")),
    ...{ name: "settings", icon: "settings", needs: "showOwnAccount" },
  },
  {
    ...pageRoute("/audit", () => import("./pages/audit/audit-page.tsx")),
    ...{ name: "audit", icon: "audit", needs: "listAudit" },
  },
  {
    ...pageRoute("/start", () => import("./pages/start/start-page.tsx")),
    ...{ name: "start", icon: "start", needs: "createKey" },
  },
  {
    ...pageRoute("/help", () => import("./pages/help/help-page.tsx")),
    ...{ name: "help", icon: "help", needs: "showService" },
  },
  {
    ...pageRoute("/help/api", () => import("./pages/help/clients-page.tsx")),
    ...{ name: "clients", icon: "help", needs: "showService", hidden: true },
  },
  {
    ...pageRoute("/changes", () => import("./pages/changes/changes-page.tsx")),
    ...{ name: "changes", icon: "changes", needs: "listChanges", hidden: true },
  },
  {
    ...pageRoute("/account", () => import("./pages/account/account-page.tsx")),
    ...{ name: "account", icon: "account", needs: "profile", hidden: true },
  },
  {
    ...pageRoute("/notices", () => import("./pages/notices/notices-page.tsx")),
    ...{ name: "notices", icon: "notices", needs: "listNotices", hidden: true },
  },
];
