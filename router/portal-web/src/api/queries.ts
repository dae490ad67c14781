/** The portal's API as React hooks. */
import type { PortalContract } from "../../../src/surface/contract/contract.ts";
import { calls } from "./client.ts";
import { createHooks } from "./hooks.ts";

export const { useRead, useChange } = createHooks<PortalContract>(calls);
