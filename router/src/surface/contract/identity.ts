/** Signing in and out, one's own profile and password, the second factor, invitations. */
import { Type } from "typebox";
import {
  administrators,
  byId,
  count,
  email,
  everybody,
  id,
  instant,
  name,
  object,
  orNull,
  pageOf,
  pageQuery,
  role,
  type Routes,
} from "./route.ts";

/** What is typed to be compared. Whether it is right says the server, not its length. */
const typedPassword = Type.String({ minLength: 1, maxLength: 1024 });
const newPassword = Type.String({ minLength: 12, maxLength: 1024, description: "At most 1024 bytes." });
const code = Type.String({ minLength: 6, maxLength: 40, description: "Of the authenticator, or a recovery code." });
const linkToken = Type.String({ pattern: "^[\\w-]{43}$", description: "The link's fragment." });
const language = Type.Enum(["de", "en"]);
const theme = Type.Enum(["light", "dark"]);
const proof = { password: typedPassword, code: Type.Optional(code) };

const invitationState = Type.Enum(["open", "accepted", "expired", "withdrawn"]);
const invitation = {
  email: Type.String(),
  role,
  state: invitationState,
  createdAt: instant,
  expiresAt: instant,
};
const profile = object({
  email: Type.String(),
  role,
  language: orNull(language),
  theme: orNull(theme),
  totp: Type.Boolean(),
  recoveryCodesLeft: count,
  passwordSetAt: orNull(instant),
  lastLoginAt: orNull(instant),
});

const signingIn = {
  signInOffers: {
    method: "GET",
    path: "/sign-in-offers",
    summary: "What the page to sign in may offer",
    roles: ["nobody"],
    reply: object({ registration: Type.Boolean(), resetByMail: Type.Boolean() }),
  },
  signIn: {
    method: "POST",
    path: "/sign-in",
    summary: "Sign in. Where the second factor is on: 401 totp_required first, then again with a code",
    roles: ["nobody"],
    body: object({ email, ...proof }),
  },
  signOut: {
    method: "POST",
    path: "/sign-out",
    summary: "End this session",
    roles: everybody,
  },
  signOutEverywhere: {
    method: "POST",
    path: "/sign-out-everywhere",
    summary: "End all sessions of this user, this one too",
    roles: everybody,
  },
  register: {
    method: "POST",
    path: "/registration",
    summary: "Open an account, if registration is open: its Owner is signed in",
    roles: ["nobody"],
    body: object({ accountName: name, email, password: newPassword, language: Type.Optional(language) }),
  },
  requestPasswordReset: {
    method: "POST",
    path: "/password-reset/request",
    summary: "Mail a link for a new password, if there is such a user; the answer does not say",
    roles: ["nobody"],
    body: object({ email }),
  },
  resetPassword: {
    method: "POST",
    path: "/password-reset",
    summary: "Set a new password with a link's token, which is used up; all sessions end",
    roles: ["nobody"],
    body: object({ token: linkToken, password: newPassword }),
  },
  previewInvitation: {
    method: "POST",
    path: "/invitation/preview",
    summary: "What a link invites to; uses nothing up",
    roles: ["nobody"],
    body: object({ token: linkToken }),
    reply: object({ ...invitation, accountName: Type.String() }),
  },
  acceptInvitation: {
    method: "POST",
    path: "/invitation",
    summary: "Join with a password; the link is used up, its user signed in",
    roles: ["nobody"],
    body: object({
      token: linkToken,
      password: newPassword,
      language: Type.Optional(language),
      theme: Type.Optional(theme),
    }),
  },
} as const satisfies Routes;

const oneself = {
  profile: { method: "GET", path: "/profile", summary: "The signed-in user", roles: everybody, reply: profile },
  updateProfile: {
    method: "PATCH",
    path: "/profile",
    summary: "Language and theme; null: as browser and system say",
    roles: everybody,
    body: object({ language: Type.Optional(orNull(language)), theme: Type.Optional(orNull(theme)) }),
    reply: profile,
  },
  changePassword: {
    method: "POST",
    path: "/password",
    summary: "Change the own password; all other sessions end, this one stays",
    roles: everybody,
    body: object({ ...proof, newPassword }),
  },
  devices: {
    method: "GET",
    path: "/devices",
    summary: "Where this user is signed in",
    roles: everybody,
    reply: object({
      items: Type.Array(
        object({
          id,
          current: Type.Boolean(),
          createdAt: instant,
          seenAt: instant,
          expiresAt: instant,
          source: Type.String(),
          agent: Type.String(),
        }),
      ),
    }),
  },
  endDevice: {
    method: "DELETE",
    path: "/devices/:id",
    summary: "End one of the own sessions; this one goes, too, if it is the one named",
    roles: everybody,
    params: byId,
  },
  setUpTotp: {
    method: "POST",
    path: "/totp/set-up",
    summary: "A secret for an authenticator, shown once; it counts from its confirmation",
    roles: everybody,
    body: object(proof),
    reply: object({ secret: Type.String(), uri: Type.String() }),
  },
  confirmTotp: {
    method: "POST",
    path: "/totp/confirm",
    summary: "Turn the second factor on with a first code; the recovery codes are shown once",
    roles: everybody,
    body: object({ code }),
    reply: object({ recoveryCodes: Type.Array(Type.String()) }),
  },
  turnTotpOff: {
    method: "POST",
    path: "/totp/off",
    summary: "Turn the second factor off",
    roles: everybody,
    body: object(proof),
  },
} as const satisfies Routes;

const ofOthers = {
  invitations: {
    method: "GET",
    path: "/invitations",
    summary: "Who was invited to this account, the last one first",
    roles: administrators,
    query: pageQuery(Type.Enum(["email", "role", "state", "created", "expires"]), {
      role: Type.Optional(role),
      state: Type.Optional(invitationState),
    }),
    reply: pageOf(object({ userId: id, ...invitation })),
  },
  renewInvitation: {
    method: "POST",
    path: "/users/:id/invitation",
    summary: "A new link for who has not joined; the one before is over",
    roles: administrators,
    params: byId,
    reply: object({
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "null: no mail is sent here." })),
    }),
  },
  withdrawInvitation: {
    method: "DELETE",
    path: "/users/:id/invitation",
    summary: "The link leads nowhere any more",
    roles: administrators,
    params: byId,
  },
  makeResetLink: {
    method: "POST",
    path: "/users/:id/password-reset",
    summary: "Mail a user a link for a new password; where no mail is sent, or it failed, the link is in the answer",
    roles: administrators,
    params: byId,
    reply: object({ resetUrl: orNull(Type.String()), mailed: Type.Boolean() }),
  },
} as const satisfies Routes;

export const identityContract = { ...signingIn, ...oneself, ...ofOthers } as const satisfies Routes;
