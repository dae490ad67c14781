/**
 * The callers and results of each route, written by hand. The test compares the contract with this table. Ids in a
 * request belong to one account, so that the same request can be made with the ids of another account.
 */
import type { Contract, PortalContract } from "../../src/surface/contract/contract.ts";

/** New ids of one account. */
export interface Ids {
  readonly user: string;
  /** A key, the asker's own if the asker is in this account. */
  readonly key: string;
  readonly notice: string;
  readonly session: string;
}

interface Ask {
  readonly id?: string;
  readonly query?: string;
  readonly body?: object;
}

export interface Expected {
  /** Owner, Admin, Member. N means every caller, also without a session. */
  readonly may: "OAM" | "OA" | "O" | "N";
  /** The status for allowed callers, with the code of a refusal. Several if it depends on the time, by role if it depends on that. */
  readonly own: string | readonly string[] | Readonly<Record<"owner" | "admin" | "member", string>>;
  /** The same with ids of another account. Undefined if the request has no ids. */
  readonly foreign?: string;
  readonly ask?: (ids: Ids) => Ask;
}

const token = "x".repeat(43);
const user = ({ user: id }: Ids) => ({ id });
const key = ({ key: id }: Ids) => ({ id });
const proof = { password: "a wrong password" };
const quoteId = "0".repeat(48);
/** Days on which an account's ids have usage. */
export const usedDay = "2026-01-15";
const usedDays = `from=${usedDay}&to=${usedDay}`;

/** Routes for the operator only, on the admin socket or in the console. */
export const operatorsOwn = [
  "createAccount",
  "quoteAccount",
  "listAccounts",
  "showAccount",
  "renameAccount",
  "blockAccount",
  "unblockAccount",
  "previewAccountDeletion",
  "deleteAccount",
  "signOutUser",
  "turnUserTotpOff",
  "verifyAudit",
  "evaluateCredits",
  "listSetAside",
  "traceUsage",
  "listIssuedInvoices",
  "listWaitingInvoices",
  "listNodes",
  "showNode",
  "setMaintenance",
  "acknowledgeFailures",
  "prewarm",
  "listCatalogue",
  "reloadCatalogue",
  "listRunning",
  "listEnded",
  "countRunning",
  "listPast",
  "explainRequest",
  "makeConsoleLink",
  "listRouters",
  "showConsole",
  "closeConsole",
  "watchConsole",
  "startCapacity",
  "cancelCapacity",
  "showRouter",
  "showLogLevel",
  "setLogLevel",
] as const satisfies readonly (keyof Contract)[];

/** Routes for people and the operator. */
export const operatorsToo = [
  ...["listUsers", "showUser", "createUser", "updateUser", "blockUser", "unblockUser", "deleteUser"],
  ...["invitations", "renewInvitation", "withdrawInvitation", "makeResetLink"],
  ...["listKeys", "showKey", "createKey", "updateKey", "regenerateKey", "revokeKey"],
  ...["showCredits", "showUsage", "showRefusals", "listNotices", "listAudit"],
  ...["showPackage", "quotePackage", "changePackage", "listInvoiceLines"],
  ...["showInvoice", "showBilling", "setBilling"],
];

/** Routes for people. */
export const expectations: Readonly<Record<keyof PortalContract, Expected>> = {
  session: { may: "OAM", own: "200" },
  signInOffers: { may: "N", own: "200" },
  signIn: {
    may: "N",
    own: ["401 login_failed", "429 too_many_attempts"],
    ask: () => ({ body: { email: "who@example.com", ...proof } }),
  },
  signOut: { may: "OAM", own: "204" },
  signOutEverywhere: { may: "OAM", own: "204" },
  register: {
    may: "N",
    own: "403 403",
    ask: () => ({ body: { accountName: "X", email: "x@example.com", password: "correct horse battery" } }),
  },
  previewRegistration: { may: "N", own: "403 403", ask: () => ({ body: { token } }) },
  confirmRegistration: {
    may: "N",
    own: "403 403",
    ask: () => ({ body: { token, password: "correct horse battery" } }),
  },
  requestPasswordReset: {
    may: "N",
    own: "409 409", // no mail is sent here
    ask: () => ({ body: { email: "who@example.com" } }),
  },
  resetPassword: { may: "N", own: "404 404", ask: () => ({ body: { token, password: "correct horse battery" } }) },
  previewReset: { may: "N", own: "404 404", ask: () => ({ body: { token } }) },
  previewInvitation: { may: "N", own: "404 404", ask: () => ({ body: { token } }) },
  acceptInvitation: { may: "N", own: "404 404", ask: () => ({ body: { token, password: "correct horse battery" } }) },
  profile: { may: "OAM", own: "200" },
  updateProfile: { may: "OAM", own: "200", ask: () => ({ body: { language: "de" } }) },
  changePassword: {
    may: "OAM",
    own: "401 login_failed",
    ask: () => ({ body: { ...proof, newPassword: "correct horse battery" } }),
  },
  devices: { may: "OAM", own: "200" },
  endDevice: { may: "OAM", own: "204", foreign: "404 404", ask: ({ session: id }) => ({ id }) },
  setUpTotp: { may: "OAM", own: "401 login_failed", ask: () => ({ body: proof }) },
  confirmTotp: { may: "OAM", own: "401 login_failed", ask: () => ({ body: { code: "000000" } }) },
  turnTotpOff: { may: "OAM", own: "401 login_failed", ask: () => ({ body: proof }) },
  invitations: { may: "OA", own: "200" },
  renewInvitation: { may: "OA", own: "200", foreign: "404 404", ask: user },
  withdrawInvitation: { may: "OA", own: "204", foreign: "404 404", ask: user },
  makeResetLink: { may: "OA", own: "409 409", foreign: "404 404", ask: user },

  listUsers: { may: "OA", own: "200" },
  showUser: { may: "OA", own: "200", foreign: "404 404", ask: user },
  createUser: {
    may: "OA",
    own: "201",
    ask: ({ key: id }) => ({ body: { email: `${id}@new.example`, role: "member" } }),
  },
  updateUser: {
    may: "OA",
    own: "200",
    foreign: "404 404",
    ask: ({ user: id }) => ({ id, body: { role: "admin", creditLimit: "1" } }),
  },
  blockUser: { may: "OA", own: "200", foreign: "404 404", ask: user },
  unblockUser: { may: "OA", own: "200", foreign: "404 404", ask: user },
  deleteUser: { may: "OA", own: "204", foreign: "404 404", ask: user },

  listKeys: {
    may: "OAM",
    own: "200",
    foreign: "200",
    ask: (ids) => ({ query: `userId=${ids.user}` }),
  },
  showKey: { may: "OAM", own: "200", foreign: "404 404", ask: key },
  createKey: {
    may: "OAM",
    own: { owner: "201", admin: "403 403", member: "403 403" }, // for somebody else
    foreign: "404 404",
    ask: (ids) => ({ body: { name: "x", userId: ids.user } }),
  },
  updateKey: { may: "OAM", own: "200", foreign: "404 404", ask: ({ key: id }) => ({ id, body: { name: "y" } }) },
  regenerateKey: { may: "OAM", own: "201", foreign: "404 404", ask: key },
  revokeKey: { may: "OAM", own: "200", foreign: "404 404", ask: key },

  showCredits: { may: "OAM", own: "200" },
  showUsage: {
    may: "OAM",
    own: "200",
    foreign: "200",
    ask: (ids) => ({ query: `by=key,user&${usedDays}&keyId=${ids.key}&userId=${ids.user}` }),
  },
  exportUsage: {
    may: "OAM",
    own: "200",
    foreign: "200",
    ask: (ids) => ({ query: `by=key,user&${usedDays}&keyId=${ids.key}` }),
  },
  showRefusals: { may: "OAM", own: "200" },
  listRequests: {
    may: "OAM",
    own: "200",
    foreign: "200",
    ask: (ids) => ({ query: `keyId=${ids.key}&userId=${ids.user}` }),
  },
  exportRequests: {
    may: "OAM",
    own: "200",
    foreign: "200",
    ask: (ids) => ({ query: `keyId=${ids.key}` }),
  },
  listNotices: { may: "OAM", own: "200" },
  readNotices: { may: "OAM", own: "200", foreign: "200", ask: (ids) => ({ body: { ids: [ids.notice] } }) },
  listModels: { may: "OAM", own: "200" },
  listChanges: { may: "OAM", own: "200" },
  showService: { may: "OAM", own: "200" },
  chat: {
    may: "OAM",
    own: "200",
    ask: () => ({ body: { model: "small-24b", messages: [{ role: "user", content: "Hello" }] } }),
  },
  // There is no such request.
  showChatCost: { may: "OAM", own: "200", ask: () => ({ id: "01a20725-2205-7ae0-916b-6ee7e6a3dde7" }) },

  showPackage: { may: "OAM", own: "200" },
  quotePackage: { may: "O", own: "201", ask: () => ({ body: { action: "cancel" } }) },
  changePackage: { may: "O", own: "409 price_changed", ask: () => ({ body: { action: "cancel", quoteId } }) },
  listInvoiceLines: { may: "OAM", own: "200" },
  listInvoices: { may: "O", own: "200" },
  showInvoice: { may: "O", own: "404 404", foreign: "404 404", ask: ({ user: id }) => ({ id }) },
  showBilling: { may: "O", own: "200" },
  setBilling: {
    may: "O",
    own: "200",
    ask: () => ({
      body: { name: "A", street: "B 1", postalCode: "1", city: "C", country: "DE", vatId: null, email: null },
    }),
  },
  showOwnAccount: { may: "O", own: "200" },
  renameOwnAccount: { may: "O", own: "200", ask: () => ({ body: { name: "New name" } }) },
  closeAccount: { may: "O", own: "400 400", ask: () => ({ body: { name: "not the name", ...proof } }) },
  listAudit: { may: "OA", own: "200", foreign: "200", ask: (ids) => ({ query: `actor=${ids.user}` }) },
  exportAudit: { may: "OA", own: "200", foreign: "200", ask: (ids) => ({ query: `object=${ids.key}` }) },
};
