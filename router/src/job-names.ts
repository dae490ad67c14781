/** The router's jobs and their log messages if they fail, and the words for faults of the database. */

/** Messages by job name. */
export const jobFailures = {
  "audit-retention": "old entries of the audit log could not be removed",
  credits: "credits could not be evaluated; earlier blocks stay in effect",
  heartbeats: "heartbeats could not be sent to the nodes",
  "identity-sweep": "expired sessions, links and keys could not be deleted; they are still invalid",
  "limit-peaks": "the highest request rates of accounts could not be stored; the overview lacks them",
  "node-wishes": "the operators' wishes for nodes cannot be read",
  "notice-mails": "notices could not be mailed; they are in the portal, and the mails are tried again",
  refusals: "refused requests and their counts could not be stored; they are kept in memory",
  routers: "the list of routers cannot be read",
  "usage-days": "partitions of usage records could not be made or dropped, or old requests could not be deleted",
} as const;

export type JobName = keyof typeof jobFailures;
type DatabaseJob = Exclude<JobName, "heartbeats">;

const otherUses = ["connection", "restart", "key-changes", "key-lookup", "portal", "usage-commit"] as const;

/** The job or use that a fault of the database disturbed. */
export type DatabaseUse = (typeof otherUses)[number] | DatabaseJob;

export function usesDatabase(job: JobName): job is DatabaseJob {
  return job !== "heartbeats";
}

export const databaseUses: readonly DatabaseUse[] = [
  ...otherUses,
  ...(Object.keys(jobFailures) as JobName[]).filter(usesDatabase),
];
