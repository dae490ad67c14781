/** The cookie that carries a session's token. No script and no other site gets it. */
export const cookieName = "__Host-weiche";

export function sessionCookie(token: string, maxAgeSeconds: number): string {
  return `${cookieName}=${token}; Path=/; Max-Age=${Math.floor(maxAgeSeconds)}; HttpOnly; Secure; SameSite=Lax`;
}
