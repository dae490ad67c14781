/** Reads what a systemd unit prepares for its program: its user, copies of files, credentials and rights. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folders of units, the most important first, and last the units that Weiche brings. */
const unitFolders = [
  "/etc/systemd/system",
  "/run/systemd/system",
  "/usr/local/lib/systemd/system",
  "/usr/lib/systemd/system",
  join(import.meta.dirname, "../../../deploy/systemd"),
];

export interface ServiceUnit {
  /** Such as `weiche-router.service`. */
  readonly name: string;
  /** The user that runs the program. If undefined, root does. */
  readonly user: string | undefined;
  /** Variables of the program. */
  readonly environment: ReadonlyMap<string, string>;
  /** Files below `/run` that exist only while the program runs, with root's files from which systemd makes them. */
  readonly sources: ReadonlyMap<string, string>;
  /** Whether the unit also makes files from sources that `sources` does not list. */
  readonly makesMore: boolean;
  /** Returns the setting that hides the file from the program, such as `ProtectHome`. */
  hiddenBy(file: string): string | undefined;
  /** Whether the program may listen on ports below 1024. */
  readonly bindsLowPorts: boolean;
}

/** Returns the unit as systemd reads it, with its drop-ins. Returns undefined if this host has none. */
export function readServiceUnit(name: string, folders: readonly string[] = unitFolders): ServiceUnit | undefined {
  const text = folders.map((folder) => readIfThere(join(folder, name))).find((found) => found !== undefined);
  if (text === undefined) return undefined;
  const settings = settingsOf([text, ...dropIns(name, folders)]);
  const words = (key: string) => (settings.get(key) ?? []).flatMap((line) => line.split(/\s+/));
  const last = (key: string) => settings.get(key)?.at(-1);
  const commands = settings.get("ExecStartPre") ?? [];
  const credentials = new Map((settings.get("LoadCredential") ?? []).map((line) => split(line, ":")));
  const given = (settings.get("SetCredential") ?? []).map((line) => split(line, ":")[0]);
  return {
    name,
    user: last("User"),
    environment: new Map(words("Environment").map((word) => split(word, "="))),
    sources: new Map([
      ...commands.flatMap(copies),
      ...[...credentials].map(([id, file]): [string, string] => [`/run/credentials/${name}/${id}`, file]),
    ]),
    makesMore:
      commands.some((command) => copies(command).length === 0) ||
      given.some((id) => !credentials.has(id)) ||
      otherCredentials.some((key) => settings.has(key)),
    hiddenBy: (file) => hiding.find(([key, value, folders]) => last(key) === value && folders.test(file))?.[0],
    bindsLowPorts:
      last("PrivateUsers") !== "yes" &&
      ["AmbientCapabilities", "CapabilityBoundingSet"].every((key) => words(key).includes("CAP_NET_BIND_SERVICE")),
  };
}

const otherCredentials = ["LoadCredentialEncrypted", "SetCredentialEncrypted", "ImportCredential"];
/** Settings that hide folders from a program. */
const hiding: readonly (readonly [key: string, value: string, folders: RegExp])[] = [
  ["ProtectHome", "yes", /^\/(home|root|run\/user)\//],
  ["PrivateTmp", "yes", /^(\/var)?\/tmp\//],
];

/**
 * Returns whether the file may exist only while its service runs, made by systemd or a unit in a way that is unknown.
 * `unit`: the service's unit, if this host has it.
 */
export function mayBeMade(file: string, unit: ServiceUnit | undefined): boolean {
  return /^\/run\/(credentials|weiche)\//.test(file) && unit?.makesMore !== false;
}

/** Returns the copies that a command with `install … -t FOLDER FILE…` makes. */
function copies(command: string): [string, string][] {
  const [, folder, files = ""] = /\binstall\b[^;'"]*? -t (\S+)((?: +\/[^\s;'"]+)+)/.exec(command) ?? [];
  return files.match(/\S+/g)?.map((file) => [`${folder}/${file.split("/").at(-1)}`, file]) ?? [];
}

/** Returns the texts of the drop-ins, sorted by name. Of several with one name, the most important counts. */
function dropIns(name: string, folders: readonly string[]): readonly string[] {
  const files = new Map<string, string>();
  for (const folder of folders.map((each) => join(each, `${name}.d`)).toReversed())
    for (const file of namesIn(folder)) if (file.endsWith(".conf")) files.set(file, join(folder, file));
  return [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, file]) => readIfThere(file) ?? "");
}

/** Returns all values of each key. As for systemd, an empty value removes those before it. */
function settingsOf(texts: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const settings = new Map<string, string[]>();
  for (const line of texts.flatMap((text) => text.replaceAll(/\\\n/g, " ").split("\n"))) {
    const [, key, value] = /^(\w+)=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined) continue;
    settings.set(key, value ? [...(settings.get(key) ?? []), value] : []);
  }
  return settings;
}

function split(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
