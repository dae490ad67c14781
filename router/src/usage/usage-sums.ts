/** How usage moves the sums that it belongs to: those of its billing period and those of its day. */

const moved = ["requests", "prompt_tokens", "completion_tokens", "credits"];
const totalKeys = "account_id, period_start, scope, subject";
const dayKeys = "account_id, day, period_start, user_id, key_id, model";

/**
 * The clauses `totals` and `days` of a `with`. They add the rows of the clause `rows` to the sums, or take them off again.
 * Rows have the columns of a usage record, and `requests`. Sums are taken in the order of their keys, so that two
 * statements cannot wait for each other.
 */
export function movedSums(rows: string, sign: "+" | "-"): string {
  const set = moved.map((name) => `${name} = t.${name} ${sign} excluded.${name}`).join(", ");
  const sums = moved.map((name) => `sum(${name}) as ${name}`).join(", ");
  return `totals as (
    insert into usage_totals as t (${totalKeys}, ${moved.join(", ")})
    select ${totalKeys}, ${sums}
    from ${rows}
    cross join lateral (values ('account', ''), ('user', user_id::text), ('key', key_id::text), ('model', model)) s (scope, subject)
    group by ${totalKeys}
    order by ${totalKeys}
    on conflict (${totalKeys}) do update set ${set}
  ), days as (
    insert into usage_days as t (${dayKeys}, ${moved.join(", ")})
    select ${dayKeys}, ${sums}
    from ${rows}
    group by ${dayKeys}
    order by ${dayKeys}
    on conflict (${dayKeys}) do update set ${set}
  )`;
}
