/** Reads database URLs with several hosts, such as `postgres://user@db1,db2:5433/weiche`. No URL parser accepts them. */
import { StartError } from "@weiche/shared/files/start-error.ts";

const urlParts = /^([a-z]+:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/is;

/** Returns one URL per host. Throws a `StartError` if hosts are listed elsewhere in the URL. */
export function hostUrls(url: string): readonly string[] {
  const [, before, hosts, after] = urlParts.exec(url) ?? [];
  if (/[?&]host=[^&]*,/i.test(after ?? ""))
    throw new StartError("database.url: name several hosts before the path, as in postgres://user@db1,db2:5433/weiche");
  return hosts?.includes(",") ? hosts.split(",").map((host) => `${before}${host}${after}`) : [url];
}

/** Edits a URL with several hosts by an edit for URLs with one host. */
export function withOneHost(url: string, edit: (url: string) => string): string {
  const urls = hostUrls(url);
  if (urls.length === 1) return edit(url);
  const [, before, , after] = urlParts.exec(edit(urls[0]!))!;
  return `${before}${urls.map(hostOf).join(",")}${after}`;
}

/** Returns `host:port` of a URL, without user and password. */
export function hostOf(url: string): string {
  return urlParts.exec(url)?.[2] ?? "";
}
