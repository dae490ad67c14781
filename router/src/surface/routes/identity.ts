/** Handlers for signing in and out, the own profile and password, the second factor, and invitations. */
import { asId, type UserId } from "@weiche/shared/ids.ts";
import type { Identity } from "../../accounts/identity.ts";
import type { Unproven } from "../../sign-in/proof.ts";
import { ProofIsOver, type Evidence } from "../../sign-in/proven.ts";
import type { Session } from "../../sign-in/sessions.ts";
import { listInvitations } from "../../accounts/invitation-list.ts";
import { accountBlocked, RequestError, tooManyAttempts } from "../../rights/request-error.ts";
import type { Call, Handlers } from "../server/add-routes.ts";
import type { invitationsContract, profileContract, signInContract } from "../contract/identity.ts";
import { pageWindow, type Route } from "../contract/route.ts";
import type { HandlerDeps } from "./handler-deps.ts";

type SignIn = Handlers<typeof signInContract>;
type Profile = Handlers<typeof profileContract>;
type Invitations = Handlers<typeof invitationsContract>;

export function identityHandlers(deps: HandlerDeps): SignIn & Profile & Invitations {
  return { ...signingIn(deps), ...oneself(deps), ...secondFactor(deps), ...ofOthers(deps) };
}

function signingIn({ identity, clock }: HandlerDeps): SignIn {
  const { login, passwords, invitations } = identity;
  type Begun = { readonly token: string; readonly session: Session };
  async function setSession(call: Pick<Call<Route>, "session" | "setSession">, { token, session }: Begun) {
    // Ends the previous session, because somebody else may have planted its cookie.
    if (call.session) await identity.sessions.end(call.session.id);
    call.setSession(token, (session.expiresAtMs - clock.now()) / 1000);
  }
  function requireRegistration() {
    if (!identity.offers.registration)
      throw new RequestError("forbidden", "this service has no registration: ask its operator for an invitation");
  }
  return {
    signInOffers: () => identity.offers,

    async signIn(call) {
      const outcome = await login.signIn(call.body, signedInFrom(call));
      if (outcome.kind !== "signed-in") throw unproven(outcome);
      await setSession(call, outcome);
    },

    async signOut(call) {
      await identity.as(call.origin).login.signOut(call.session.user.id, call.session.id);
      call.clearSession();
    },

    async signOutEverywhere(call) {
      await identity.as(call.origin).login.signOutEverywhere(call.session.user.id);
      call.clearSession();
    },

    async register(call) {
      requireRegistration();
      const outcome = await identity.registration.register(call.body, signedInFrom(call));
      if (outcome.kind === "throttled") throw tooManyAttempts(outcome.waitMs);
      if (outcome.kind === "registered") await setSession(call, outcome);
    },

    previewRegistration({ body, address }) {
      requireRegistration();
      return identity.registration.preview(body.token, address);
    },

    async confirmRegistration(call) {
      requireRegistration();
      await setSession(call, await identity.registration.confirm(call.body, signedInFrom(call)));
    },

    async requestPasswordReset({ body, address }) {
      const waitMs = await passwords.requestReset(body.email, address);
      if (waitMs > 0) throw tooManyAttempts(waitMs);
    },

    resetPassword: ({ body, address }) => passwords.reset(body.token, body.password, address),

    previewReset: ({ body, address }) => passwords.previewReset(body.token, address),

    previewInvitation: ({ body, address }) => invitations.preview(body.token, address),

    async acceptInvitation(call) {
      await setSession(call, await invitations.accept(call.body, signedInFrom(call)));
    },
  };
}

type TotpRoutes = "setUpTotp" | "confirmTotp" | "turnTotpOff";

function oneself({ identity }: HandlerDeps): Omit<Profile, TotpRoutes> {
  return {
    profile: ({ session }) => identity.profile.show(session.user.id),
    updateProfile: ({ session, body }) => identity.profile.update(session.user.id, body),

    async changePassword({ session, body: { newPassword, ...proof }, origin, address }) {
      const claim = { email: session.user.email, ...proof };
      const from = { source: address, sessionId: session.id };
      const outcome = await identity.as(origin).passwords.change(claim, newPassword, from);
      if (outcome.kind !== "changed") throw unprovenAgain(outcome);
    },

    async devices({ session }) {
      const views = await identity.sessions.list(session.user.id);
      return { items: views.map((view) => ({ ...view, current: view.id === session.id })) };
    },

    endDevice: ({ session, params, origin }) => identity.as(origin).login.endDevice(session.user.id, params.id),
  };
}

function secondFactor({ identity }: HandlerDeps): Pick<Profile, TotpRoutes> {
  /** Proves the password and code, then writes. `write` checks the evidence again, because it may be outdated by then. */
  async function withProof<T>(
    { session, body, address }: Pick<Call<typeof profileContract.turnTotpOff>, "session" | "body" | "address">,
    write: (evidence: Evidence) => Promise<T>,
  ): Promise<T> {
    const proof = await identity.prove(
      { email: session.user.email, ...body },
      { source: address, sessionId: session.id },
    );
    if (proof.kind !== "proven") throw unprovenAgain(proof);
    return write({ proof, sessionId: session.id }).catch((error: unknown) => {
      throw error instanceof ProofIsOver ? unprovenAgain({ kind: "wrong" }) : error;
    });
  }
  return {
    setUpTotp: (call) => withProof(call, (evidence) => identity.secondFactor.setUp(evidence)),

    async confirmTotp({ session, body, origin, address }) {
      const outcome = await identity.as(origin).secondFactor.confirm(session, address, body.code);
      if (outcome.kind !== "on") throw unproven(outcome);
      return { recoveryCodes: outcome.recoveryCodes };
    },

    turnTotpOff: (call) =>
      withProof(call, (evidence) => identity.as(call.origin).secondFactor.turnOff(call.session.user.id, evidence)),
  };
}

/**
 * Counts the users and one-time links that an account's people make, because each may send a mail. Throws `RequestError` if
 * there were too many.
 */
export async function countLink({ invitations }: Identity, { user }: Session, address: string): Promise<void> {
  const waitMs = await invitations.count(user.accountId, address);
  if (waitMs > 0) throw tooManyAttempts(waitMs);
}

function ofOthers({ identity, database, clock }: HandlerDeps): Invitations {
  const by = (call: Pick<Call<Route>, "origin">) => identity.as(call.origin);
  return {
    async invitations({ accountId, query }) {
      const { page, pageSize, ...window } = pageWindow(query);
      const { sort = "created", order = sort === "created" ? "desc" : "asc", ...filter } = query;
      const list = await listInvitations(database, accountId, filter, { ...window, sort, order }, clock.now());
      return { ...list, page, pageSize };
    },
    async renewInvitation(call) {
      if (call.session) await countLink(identity, call.session, call.address);
      return by(call).invitations.renew(asId<UserId>(call.params.id));
    },
    withdrawInvitation: (call) => by(call).invitations.withdraw(asId<UserId>(call.params.id)),
    async makeResetLink(call) {
      if (call.session) await countLink(identity, call.session, call.address);
      return by(call).passwords.makeResetLink(asId<UserId>(call.params.id));
    },
    signOutUser: (call) => by(call).login.signOutEverywhere(asId<UserId>(call.params.id)),
    turnUserTotpOff: (call) => by(call).secondFactor.turnOff(asId<UserId>(call.params.id)),
  };
}

function signedInFrom({ address, userAgent }: Pick<Call<Route>, "address" | "userAgent">) {
  return { source: address, agent: userAgent ?? "" };
}

/** Returns the refusal for a signed-in person. Only the password can be wrong, because the address is known. */
export function unprovenAgain(outcome: Unproven): RequestError {
  if (outcome.kind !== "wrong") return unproven(outcome);
  return new RequestError("login_failed", "the current password is wrong", {
    details: [{ param: "password", code: "wrong" }],
  });
}

function unproven(outcome: Unproven): RequestError {
  switch (outcome.kind) {
    case "throttled":
      return tooManyAttempts(outcome.waitMs);
    case "wrong":
      return new RequestError("login_failed", "e-mail address or password is wrong");
    case "code-required":
      return new RequestError("totp_required", "a code of your authenticator is needed");
    case "code-wrong":
      return new RequestError("login_failed", "the code is wrong, or it was used already", {
        details: [{ param: "code", code: "wrong" }],
      });
    case "account-blocked":
      return accountBlocked();
    case "blocked":
      return new RequestError("forbidden", "this user is blocked. An Admin or Owner of the account can change that");
  }
}
