/** Handler that lists the API's refusals and limits. */
import { apiErrors, mayRetry, type ApiErrorKind } from "@weiche/shared/errors.ts";
import { activeKeysMax } from "../../accounts/keys.ts";
import { usersMax } from "../../accounts/users.ts";
import { bodyBytesMax } from "../../api/body/body-receiver.ts";
import { pageRefusals, type PageRefusalKind } from "../../edge/html-pages.ts";
import { changesBurst } from "../../rights/audit-log.ts";
import type { serviceContract } from "../contract/service.ts";
import type { Handlers } from "../server/add-routes.ts";
import type { HandlerDeps } from "./handler-deps.ts";

const answers = Object.entries(apiErrors).map(([kind, { status, type, code }]) => ({
  kind: kind as ApiErrorKind,
  ...{ status, type, code, retry: mayRetry(kind as ApiErrorKind) },
}));
const pages = Object.entries(pageRefusals).map(([kind, { status, retry }]) => ({
  kind: kind as PageRefusalKind,
  ...{ status, type: null, code: null, retry },
}));
/** Every refusal that a client of the API can get, sorted by status. */
export const apiRefusals = [...answers, ...pages].toSorted((a, b) => a.status - b.status);

export function serviceHandlers({ apiLimits }: HandlerDeps): Handlers<typeof serviceContract> {
  return {
    showService: () => ({
      refusals: apiRefusals,
      limits: {
        requestsPerSecond: apiLimits.perIpPerSecond === 0 ? null : apiLimits.perIpPerSecond,
        requestBurst: apiLimits.perIpBurst,
        bodyBytes: bodyBytesMax,
        requestSeconds: apiLimits.requestMsMax / 1_000,
        activeKeysPerUser: activeKeysMax,
        usersPerAccount: usersMax,
        changesAtOnce: changesBurst,
      },
    }),
  };
}
