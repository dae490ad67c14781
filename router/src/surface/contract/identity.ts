/** Signing in and out, one's own profile and password, the second factor, invitations. */
import { Type } from "typebox";
import {
  byId,
  count,
  email,
  everybody,
  id,
  instant,
  name,
  object,
  ofAccountForAdministrators,
  ofUser,
  orNull,
  pageOf,
  pageQuery,
  role,
  type RouteTable,
} from "./route.ts";

/** A password to be compared. Its minimum length is not checked: users of earlier versions may have a shorter one. */
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

export const signInContract = {
  signInOffers: {
    summary: "What the page to sign in may offer",
    may: ["nobody"],
    reply: object({ registration: Type.Boolean(), resetByMail: Type.Boolean() }),
  },
  signIn: {
    summary: "Sign in. Where the second factor is on: 401 totp_required first, then again with a code",
    may: ["nobody"],
    body: object({ email, ...proof }),
  },
  signOut: {
    summary: "End this session",
    may: everybody,
  },
  signOutEverywhere: {
    summary: "End all sessions of this user, this one too",
    may: everybody,
  },
  register: {
    summary: "Open an account, if registration is open: its Owner is signed in",
    may: ["nobody"],
    body: object({ accountName: name, email, password: newPassword, language: Type.Optional(language) }),
  },
  requestPasswordReset: {
    summary: "Mail a link for a new password, if there is such a user; the answer does not say",
    may: ["nobody"],
    body: object({ email }),
  },
  resetPassword: {
    summary: "Set a new password with a link's token, which is used up; all sessions end",
    may: ["nobody"],
    body: object({ token: linkToken, password: newPassword }),
  },
  previewInvitation: {
    summary: "What a link invites to; uses nothing up",
    may: ["nobody"],
    body: object({ token: linkToken }),
    reply: object({ ...invitation, accountName: Type.String() }),
  },
  acceptInvitation: {
    summary: "Join with a password; the link is used up, its user signed in",
    may: ["nobody"],
    body: object({
      token: linkToken,
      password: newPassword,
      language: Type.Optional(language),
      theme: Type.Optional(theme),
    }),
  },
} as const satisfies RouteTable;

export const profileContract = {
  profile: { summary: "The signed-in user", may: everybody, reply: profile },
  updateProfile: {
    summary: "Language and theme; null: as browser and system say",
    may: everybody,
    body: object({ language: Type.Optional(orNull(language)), theme: Type.Optional(orNull(theme)) }),
    reply: profile,
  },
  changePassword: {
    summary: "Change the own password; all other sessions end, this one stays",
    may: everybody,
    body: object({ ...proof, newPassword }),
  },
  devices: {
    summary: "Where this user is signed in",
    may: everybody,
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
    summary: "End one of the own sessions; this one goes, too, if it is the one named",
    may: everybody,
    params: byId,
  },
  setUpTotp: {
    summary: "A secret for an authenticator, shown once; it counts from its confirmation",
    may: everybody,
    body: object(proof),
    reply: object({ secret: Type.String(), uri: Type.String() }),
  },
  confirmTotp: {
    summary: "Turn the second factor on with a first code; the recovery codes are shown once",
    may: everybody,
    body: object({ code }),
    reply: object({ recoveryCodes: Type.Array(Type.String()) }),
  },
  turnTotpOff: {
    summary: "Turn the second factor off",
    may: everybody,
    body: object(proof),
  },
} as const satisfies RouteTable;

export const invitationsContract = {
  invitations: {
    summary: "Who was invited to this account, the last one first",
    ...ofAccountForAdministrators,
    query: pageQuery(Type.Enum(["email", "role", "state", "created", "expires"]), {
      role: Type.Optional(role),
      state: Type.Optional(invitationState),
    }),
    reply: pageOf(object({ userId: id, ...invitation })),
  },
  renewInvitation: {
    summary: "A new link for who has not joined; the one before is over",
    ...ofUser,
    reply: object({
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "null: no mail is sent here." })),
    }),
  },
  withdrawInvitation: {
    summary: "The link leads nowhere any more",
    ...ofUser,
  },
  makeResetLink: {
    summary: "Mail a user a link for a new password; where no mail is sent, or it failed, the link is in the answer",
    ...ofUser,
    reply: object({ resetUrl: orNull(Type.String()), mailed: Type.Boolean() }),
  },
  signOutUser: {
    summary: "End all sessions of a user at once",
    may: ["operator"],
    of: "user",
    params: byId,
  },
  turnUserTotpOff: {
    summary: "Turn off the second factor of a user who has lost it and all recovery codes",
    may: ["operator"],
    of: "user",
    params: byId,
  },
} as const satisfies RouteTable;
