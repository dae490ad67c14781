/** The portal: people and their accounts, as they use them themselves. */
import { createAccounts, type Accounts } from "./accounts/accounts.ts";
import { createIdentity, type Identity } from "./accounts/identity.ts";
import type { Core } from "./core.ts";
import { createMail } from "./mail/mail.ts";
import type { PublicApi } from "./open-api.ts";
import type { Nodes } from "./open-nodes.ts";
import type { Storage } from "./open-storage.ts";
import { createLoginThrottle } from "./sign-in/login-throttle.ts";
import { createPasswordHashing } from "./sign-in/password-hashing.ts";
import { startPasswordThreads } from "./sign-in/password-threads.ts";
import { createSessions } from "./sign-in/sessions.ts";
import { createHandlers } from "./surface/handlers.ts";
import { openPortal as openPortalServer, type PortalServer } from "./surface/portal-server.ts";

export interface Portal {
  readonly server: PortalServer;
  readonly accounts: Accounts;
  readonly identity: Identity;
}

export async function openPortal(core: Core, { database }: Storage, nodes: Nodes, api: PublicApi): Promise<Portal> {
  const { config, clock, events, limiter, catalogue, opened } = core;
  const mail = config.smtp && opened.use(createMail(config.smtp, clock, events));
  const hashing = createPasswordHashing(clock, opened.use(startPasswordThreads()));
  // Accounts and people send links to the portal, so that it listens before they are made.
  const server = opened.use(
    await openPortalServer({
      listen: config.listen.portal,
      publicUrl: config.publicPortal,
      apiUrl: api.url,
      tls: api.tls,
      limits: config.limits,
      sessions: createSessions(database, clock),
      clock,
      events: { ...api.events, ...events },
    }),
  );
  const people = { database, clock, portalUrl: server.url };
  const accounts = createAccounts(people);
  const { registration } = config;
  const throttle = createLoginThrottle(database, clock);
  const identity = createIdentity({ ...people, hashing, throttle, registration, mail, events });
  await server.serve(
    createHandlers({
      ...{ database, clock, accounts, identity, limiter },
      apiUrl: api.url,
      models: catalogue.models,
      catalogue: catalogue.get,
      nodes: nodes.views,
      chat: (chat) => api.server.chat(chat),
    }),
  );
  return { server, accounts, identity };
}
