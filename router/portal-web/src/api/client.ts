/** The portal's JSON API. */
import { portalAddresses } from "../../../src/surface/contract/addresses.ts";
import type { PortalContract } from "../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../src/surface/contract/route.ts";
import { createCalls, type AskOf } from "./calls.ts";
import { loginGate } from "./login-gate.ts";

export type RouteName = keyof PortalContract;
export type Ask<Name extends RouteName> = AskOf<PortalContract[Name]>;
export type Answer<Name extends RouteName> = Reply<PortalContract[Name]>;

/** After an ended login, the page asks for the password in place, and the request is repeated. */
export const calls = createCalls<PortalContract>(portalAddresses, () =>
  loginGate.isArmed ? loginGate.wait() : undefined,
);
export const { call, request, addressOf } = calls;
