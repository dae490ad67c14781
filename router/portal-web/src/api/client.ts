/** The portal's JSON API. */
import type { PortalContract } from "../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../src/surface/contract/route.ts";
import { createCalls, type AddressesOf, type AskOf } from "./calls.ts";
import { loginGate } from "./login-gate.ts";

export type RouteName = keyof PortalContract;
export type Ask<Name extends RouteName> = AskOf<PortalContract[Name]>;
export type Answer<Name extends RouteName> = Reply<PortalContract[Name]>;

const addresses: AddressesOf<PortalContract> = {
  session: "GET /session",
  signInOffers: "GET /sign-in-offers",
  signIn: "POST /sign-in",
  signOut: "POST /sign-out",
  signOutEverywhere: "POST /sign-out-everywhere",
  register: "POST /registration",
  requestPasswordReset: "POST /password-reset/request",
  resetPassword: "POST /password-reset",
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
  listNotices: "GET /notices",
  readNotices: "POST /notices/read",
  listModels: "GET /models",
  listChanges: "GET /changes",
  showService: "GET /service",
  chat: "POST /chat",
  showPackage: "GET /package",
  quotePackage: "POST /package/quotes",
  changePackage: "POST /package/changes",
  listInvoiceLines: "GET /package/invoice-lines",
  listAudit: "GET /audit",
  exportAudit: "GET /audit.csv",
};

/** A login that has ended is asked for again where the person is, and the request is repeated. */
export const calls = createCalls<PortalContract>(addresses, () => (loginGate.isArmed ? loginGate.wait() : undefined));
export const { call, request, addressOf } = calls;
