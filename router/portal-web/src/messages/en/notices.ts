export const notices = {
  lead: (unread: string) => `${unread} unread.`,
  leadNone: "You have read everything.",
  readAll: "Mark all as read",
  read: "Mark as read",
  unread: "unread",
  empty: "No notices yet",
  emptyHint: "Here you learn of limits that are reached, keys that expire and models that change.",
  named: (name: string) => `“${name}”`,
  quota: (percent: string, name: string, end: string) =>
    `${percent} of the credits of ${name} are used. The period ends on ${end}.`,
  keyLimit: (key: string, limit: string, end: string) =>
    `Key ${key} used all of its ${limit} credits. It is blocked until the period ends on ${end}.`,
  userLimit: (user: string, limit: string, end: string) =>
    `${user} used all of their ${limit} credits. Their keys get 401 until the period ends on ${end}.`,
  keyExpiring: (key: string, at: string) => `Key ${key} works until ${at}.`,
  trialEnding: (at: string) => `Your trial ends on ${at}. After that the package is charged, unless you cancel.`,
  terms: (name: string, at: string, terms: string) => `${name} from ${at}: ${terms}. Running periods stay as they are.`,
  termsStay: (name: string, at: string, terms: string) =>
    `${name} stays as it is: ${terms}. What was announced for ${at} does not come.`,
  termsText: (price: string, credits: string, perMinute: string, parallel: string, hasSupport: boolean) =>
    `${price} net a month, ${credits} credits, ${perMinute} requests per minute, ${parallel} in parallel, ${hasSupport ? "with" : "without"} e-mail support`,
  modelNew: (model: string, status: string) => `Model ${model} is there: ${status}.`,
  modelGone: (model: string) => `Model ${model} is gone.`,
  modelStatus: (model: string, from: string, to: string) => `Model ${model} changed from ${from} to ${to}.`,
  factor: (model: string, from: string, to: string) => `Credit factor of ${model} changed from ${from} to ${to}.`,
  factorComing: (model: string, factor: string, at: string) => `Credit factor of ${model} becomes ${factor} on ${at}.`,
  factorStays: (model: string, factor: string) =>
    `Credit factor of ${model} stays at ${factor}: the announced change does not come.`,
};
