/**
 * Method and path of each route of the contract, defined only here. The pages, the `weiche` command and the tests use
 * routes by name. The addresses are plain strings, so that users of them need not load the contract's schemas.
 */

/** Routes for signed-in people, some of them also for the operator. The portal's pages contain no others. */
export const portalAddresses = {
  session: "GET /session",
  signInOffers: "GET /sign-in-offers",
  signIn: "POST /sign-in",
  signOut: "POST /sign-out",
  signOutEverywhere: "POST /sign-out-everywhere",
  register: "POST /registration",
  requestPasswordReset: "POST /password-reset/request",
  resetPassword: "POST /password-reset",
  previewReset: "POST /password-reset/preview",
  previewInvitation: "POST /invitation/preview",
  acceptInvitation: "POST /invitation",
  profile: "GET /profile",
  updateProfile: "PATCH /profile",
  changePassword: "POST /password",
  devices: "GET /devices",
  endDevice: "DELETE /devices/:id",
  setUpTotp: "POST /totp/set-up",
  confirmTotp: "POST /totp/confirm",
  turnTotpOff: "POST /totp/off",
  invitations: "GET /invitations",
  renewInvitation: "POST /users/:id/invitation",
  withdrawInvitation: "DELETE /users/:id/invitation",
  makeResetLink: "POST /users/:id/password-reset",
  listUsers: "GET /users",
  showUser: "GET /users/:id",
  createUser: "POST /users",
  updateUser: "PATCH /users/:id",
  blockUser: "POST /users/:id/block",
  unblockUser: "POST /users/:id/unblock",
  deleteUser: "DELETE /users/:id",
  listKeys: "GET /keys",
  showKey: "GET /keys/:id",
  createKey: "POST /keys",
  updateKey: "PATCH /keys/:id",
  regenerateKey: "POST /keys/:id/regenerate",
  revokeKey: "POST /keys/:id/revoke",
  showCredits: "GET /credits",
  showUsage: "GET /usage",
  exportUsage: "GET /usage.csv",
  showRefusals: "GET /refusals",
  listRequests: "GET /requests",
  exportRequests: "GET /requests.csv",
  listNotices: "GET /notices",
  readNotices: "POST /notices/read",
  listModels: "GET /models",
  listChanges: "GET /changes",
  showService: "GET /service",
  chat: "POST /chat",
  showChatCost: "GET /chat/:id",
  showPackage: "GET /package",
  quotePackage: "POST /package/quotes",
  changePackage: "POST /package/changes",
  listInvoiceLines: "GET /package/invoice-lines",
  listAudit: "GET /audit",
  exportAudit: "GET /audit.csv",
} as const;

/** Routes for the operator only, on the admin socket or in the console. */
const operatorAddresses = {
  signOutUser: "DELETE /users/:id/sessions",
  turnUserTotpOff: "DELETE /users/:id/totp",
  evaluateCredits: "POST /credits/evaluate",
  listSetAside: "GET /usage/refused",
  traceUsage: "GET /usage/trace",
  verifyAudit: "POST /audit/verify",
  createAccount: "POST /accounts",
  quoteAccount: "POST /accounts/quotes",
  listAccounts: "GET /accounts",
  showAccount: "GET /accounts/:id",
  renameAccount: "PATCH /accounts/:id",
  blockAccount: "POST /accounts/:id/block",
  unblockAccount: "POST /accounts/:id/unblock",
  previewAccountDeletion: "GET /accounts/:id/deletion",
  deleteAccount: "DELETE /accounts/:id",
  listNodes: "GET /nodes",
  showNode: "GET /nodes/:id",
  setMaintenance: "POST /nodes/maintenance",
  acknowledgeFailures: "POST /nodes/acknowledge",
  prewarm: "POST /prewarm",
  listCatalogue: "GET /catalogue",
  reloadCatalogue: "POST /catalogue/reload",
  listRunning: "GET /requests/running",
  listEnded: "GET /requests/ended",
  countRunning: "GET /requests/load",
  listPast: "GET /requests/past",
  explainRequest: "GET /requests/:id",
  makeConsoleLink: "POST /console/links",
  openConsole: "POST /console/session",
  showConsole: "GET /console/session",
  closeConsole: "DELETE /console/session",
  watchConsole: "GET /console/events",
  showRouter: "GET /router",
  listRouters: "GET /routers",
  showLogLevel: "GET /log",
  setLogLevel: "POST /log",
} as const;

/** All addresses. The mark lets a bundler remove the operator's routes from the portal's pages. */
export const addresses = /* @__PURE__ */ Object.assign({}, portalAddresses, operatorAddresses);
type Addresses = typeof addresses;
export type RouteName = keyof Addresses;

/** Splits an address into method and path, such as `/users/:id`. */
export function splitAddress(address: string): readonly [method: "GET" | "POST" | "PATCH" | "DELETE", path: string] {
  return address.split(" ") as [method: "GET", path: string];
}
