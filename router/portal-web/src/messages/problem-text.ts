/** Texts for people about refusals. */
import type { Problem } from "../api/problem.ts";
import type { Texts } from "./messages.ts";
import { germanRefusals } from "./german-refusals.ts";

export function problemText(problem: Problem, { t, format }: Texts): string {
  const { problems } = t;
  const loginText = (param: string | undefined) =>
    param === "code" ? problems.code_wrong : param === "password" ? problems.password_wrong : problems.login_failed;
  switch (problem.code) {
    case "unreachable":
      return problems.unreachable;
    case "login_failed":
      return loginText(problem.details[0]?.param);
    case "totp_required":
      return problems.totp_required;
    case "too_many_attempts":
      return problems.too_many_attempts(format.number(problem.retryAfterSeconds ?? 60));
    case "too_many_requests":
      return problems.too_many_requests;
    case "404":
      return problems.not_found;
    case "model_unavailable":
    case "no_node_available":
    case "maintenance":
      return problems[problem.code];
    default:
      if (problem.status === 503) return problems.busy;
      if (problem.status >= 500) return problems.internal;
      if (problem.details.length > 0) return problems.invalid;
      return (format.language === "de" && germanRefusals[problem.message]) || problem.message || problems.internal;
  }
}

/** The mistake in one field; undefined: none. */
export function fieldText(problem: Problem | null, param: string, { t }: Texts): string | undefined {
  const found = problem?.details.find((detail) => detail.param === param);
  if (!found) return undefined;
  const words: Readonly<Record<string, string>> = t.problems.fields;
  return words[found.code] ?? t.problems.fields.other;
}
