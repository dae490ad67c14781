/** Routes for signing in and out, the own profile and password, the second factor, and invitations. */
import { mailTopics } from "../../mail/mail-topics.ts";
import { Type } from "typebox";
import {
  byId,
  code,
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
  proof,
  role,
  type RouteTable,
} from "./route.ts";

const newPassword = Type.String({ minLength: 12, maxLength: 1024, description: "At most 1024 bytes." });
const linkToken = Type.String({ pattern: "^[\\w-]{43}$", description: "The token in the link's fragment." });
const language = Type.Enum(["de", "en"]);
const theme = Type.Enum(["light", "dark"]);

const invitationState = Type.Enum(["open", "accepted", "expired", "withdrawn"]);
const invitation = {
  email: Type.String(),
  role,
  state: invitationState,
  createdAt: instant,
  expiresAt: instant,
};
const mailsOff = Type.Array(Type.Enum([...mailTopics]), {
  uniqueItems: true,
  description: "Kinds of mail that this person does not want. null if the router sends no mail.",
});
const profile = object({
  email: Type.String(),
  name: orNull(Type.String({ description: "What the person calls themselves." })),
  role,
  language: orNull(language),
  theme: orNull(theme),
  mailsOff: orNull(mailsOff),
  totp: Type.Boolean(),
  recoveryCodesLeft: count,
  passwordSetAt: orNull(instant),
  lastLoginAt: orNull(instant),
});

export const signInContract = {
  signInOffers: {
    summary: "Show whether the sign-in page offers registration and password reset by mail, and the terms to accept",
    may: ["nobody"],
    reply: object({
      registration: Type.Boolean(),
      resetByMail: Type.Boolean({ description: "If true, a registration is confirmed by a mailed link, too." }),
      terms: orNull(Type.String()),
    }),
  },
  signIn: {
    summary: "Sign in. With a second factor, the first answer is 401 totp_required; send it again with a code",
    may: ["nobody"],
    body: object({ email, ...proof }),
  },
  signOut: {
    summary: "End this session",
    may: everybody,
  },
  signOutEverywhere: {
    summary: "End all sessions of this user, including this one",
    may: everybody,
  },
  register: {
    summary:
      "If registration is open, mail a link to confirm the address. If the router sends no mail, open the account and sign its Owner in",
    may: ["nobody"],
    body: object({
      accountName: name,
      email,
      password: Type.Optional(newPassword),
      termsAccepted: Type.Optional(Type.Literal(true)),
      language: Type.Optional(language),
    }),
  },
  previewRegistration: {
    summary: "Show a registration by its link's token, without using it up. 404 if the link does not work",
    may: ["nobody"],
    body: object({ token: linkToken }),
    reply: object({ accountName: Type.String(), email: Type.String(), expiresAt: instant }),
  },
  confirmRegistration: {
    summary: "Open the account with a password. Uses up the link and signs the Owner in",
    may: ["nobody"],
    body: object({
      token: linkToken,
      password: newPassword,
      language: Type.Optional(language),
      theme: Type.Optional(theme),
    }),
  },
  requestPasswordReset: {
    summary: "Mail a password-reset link if the user exists. The answer does not reveal whether they do",
    may: ["nobody"],
    body: object({ email }),
  },
  resetPassword: {
    summary: "Set a new password with a link's token. Uses up the link and ends all sessions",
    may: ["nobody"],
    body: object({ token: linkToken, password: newPassword }),
  },
  previewReset: {
    summary: "Show until when a password-reset link works, by its token, without using it up. 404 if it does not",
    may: ["nobody"],
    body: object({ token: linkToken }),
    reply: object({ expiresAt: instant }),
  },
  previewInvitation: {
    summary: "Show an invitation by its link's token, without using it up",
    may: ["nobody"],
    body: object({ token: linkToken }),
    reply: object({ ...invitation, accountName: Type.String() }),
  },
  acceptInvitation: {
    summary: "Join with a password. Uses up the link and signs the user in",
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
  profile: { summary: "Show the signed-in user's profile", may: everybody, reply: profile },
  updateProfile: {
    summary:
      "Change name, language, theme and unwanted mails, or hide the first steps. null removes the name, and selects the browser's language and the system's theme",
    may: everybody,
    body: object({
      name: Type.Optional(orNull(name)),
      language: Type.Optional(orNull(language)),
      theme: Type.Optional(orNull(theme)),
      checklistHidden: Type.Optional(Type.Literal(true)),
      mailsOff: Type.Optional(mailsOff),
    }),
    reply: profile,
  },
  changePassword: {
    summary: "Change the own password. Ends all other sessions",
    may: everybody,
    body: object({ ...proof, newPassword }),
  },
  devices: {
    summary: "List the user's sessions",
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
    summary: "End one of the own sessions, which may be this one",
    may: everybody,
    params: byId,
  },
  setUpTotp: {
    summary: "Make a secret for an authenticator and show it once. It takes effect when confirmed",
    may: everybody,
    body: object(proof),
    reply: object({ secret: Type.String(), uri: Type.String() }),
  },
  confirmTotp: {
    summary: "Turn the second factor on with a first code. Shows the recovery codes once",
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
    summary: "List the account's invitations, newest first",
    ...ofAccountForAdministrators,
    query: pageQuery(Type.Enum(["email", "role", "state", "created", "expires"]), {
      role: Type.Optional(role),
      state: Type.Optional(invitationState),
    }),
    reply: pageOf(object({ userId: id, ...invitation })),
  },
  renewInvitation: {
    summary: "Make a new invitation link for a user who has not joined. The earlier link stops working",
    ...ofUser,
    reply: object({
      invitationUrl: Type.String(),
      mailed: orNull(Type.Boolean({ description: "Whether the link was mailed. null if the router sends no mail." })),
    }),
  },
  withdrawInvitation: {
    summary: "Revoke a pending invitation",
    ...ofUser,
  },
  makeResetLink: {
    summary: "Mail a user a password-reset link. If it cannot be mailed, the answer contains it",
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
