import { counted } from "../counted.ts";

export const usage = {
  lead: (credits: string, requests: string, input: string, output: string) =>
    `${credits} credits · ${counted(requests, "request", "requests")} · ${input} tokens in · ${output} out`,
  period: "Days",
  periods: {
    period: "this billing period",
    "7": "the last 7 days",
    "30": "the last 30 days",
    "90": "the last 90 days",
    own: "other days",
  },
  from: "From",
  to: "To",
  by: "By",
  parts: { model: "Model", key: "Key", user: "User", day: "Day" },
  csv: "CSV",
  csvHint: "Downloads what is shown, all rows",
  columns: {
    day: "Day",
    model: "Model",
    key: "Key",
    user: "User",
    requests: "Requests",
    promptTokens: "Tokens in",
    completionTokens: "Tokens out",
    credits: "Credits",
    share: "Share",
  },
  only: "Restricted to",
  showOnly: "Show the days of this alone",
  removeOnly: (what: string) => `Remove the restriction: ${what}`,
  playground: "playground",
  deletedUser: "deleted user",
  total: "Total",
  chart: "Credits per day",
  chartHint: "Arrow keys go from day to day; the table by day says the same.",
  bar: (day: string, credits: string) => `${day}: ${credits} credits`,
  others: "others",
  asOf: (time: string) => `as of ${time}; a request shows about two seconds after its end`,
  estimated: (tokens: string) =>
    `Of these tokens, ${tokens} were estimated: the model had reported no count when the client left. The CSV file has the number of each row.`,
  empty: "Nothing in these days",
  emptyHint: "Other days may have something. If there was no request yet, make the first one.",
  periodSince: (start: string) =>
    `The period began on ${start}. What was used earlier on that day belongs to the period before; other choices of days show the whole day.`,
  range: (from: string, to: string) => `${from} to ${to}`,
};
