/** Numbers of an answer as text. */

export function seconds(value: number): string {
  return `${fixed(value)} s`;
}

export function fixed(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
