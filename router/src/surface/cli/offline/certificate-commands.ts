/** `weiche certificates …`: works on files and needs no router. */
import { InvalidArgumentError, Option, type Command } from "commander";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { CertificateView, Making } from "../../../certificates/certificate-folder.ts";
import type { Actions } from "../actions.ts";
import { listText } from "../cli-text.ts";

interface Options {
  readonly dir: string;
  readonly days?: number;
  readonly within: number;
  readonly replace?: boolean;
}

const columns = ["file", "names", "expiresAt", "daysLeft", "ofThisAuthority"];
const load = () => import("../../../certificates/certificate-folder.ts");

export function addCertificateCommands(group: Command, actions: Actions): void {
  const print = (made: readonly CertificateView[]) => actions.printList(made, columns);
  const makingOf = ({ dir, days }: Options): Making => ({ folder: dir, nowMs: systemClock.now(), days });

  command("ca", "Make the authority that signs all certificates. Keep its key off the hosts.").action(
    async (options: Options) => print([(await load()).makeAuthority(makingOf(options))]),
  );
  command("router", "Make a router's certificate.")
    .argument("<name...>", "every host name and address by which agents dial the router")
    .action(async (names: [string, ...string[]], options: Options) =>
      print([(await load()).makeCertificate(makingOf(options), "router", names, options)]),
    );
  command("node", "Make a node's certificate.")
    .argument("<node>", "the node's name in agent.yaml")
    .action(async (node: string, options: Options) =>
      print([(await load()).makeCertificate(makingOf(options), "node", [node], options)]),
    );
  command("renew", "Renew certificates with the same names and new keys: the given ones, or all that expire soon.")
    .argument("[file...]", "file names without .pem, such as node-gpu-1")
    .addOption(
      new Option("--within <days>", "renew certificates that expire within this many days")
        .argParser(readDays)
        .default(30),
    )
    .action(async (files: string[], options: Options) => {
      const renewed = (await load()).renewCertificates(makingOf(options), files, options.within);
      actions.print(renewed, (width) =>
        renewed.length === 0
          ? `nothing expires within ${options.within} days`
          : [listText(renewed, columns, width), "", ...renewed.map(nextStep)].join("\n"),
      );
    });
  command("list", "List the authority's certificates and when they expire.").action(async (options: Options) =>
    print((await load()).listCertificates(options.dir, systemClock.now())),
  );

  function command(name: string, description: string): Command {
    const made = group
      .command(name)
      .description(description)
      .requiredOption("--dir <folder>", "the authority's folder, such as /root/weiche-ca");
    if (name !== "list")
      made.addOption(
        new Option("--days <days>", "days of validity; defaults to 397, and to ten years for an authority").argParser(
          readDays,
        ),
      );
    if (name === "router" || name === "node")
      made.option("--replace", "replace a certificate and a key of this name, which stop working on other hosts");
    return made;
  }
}

/** Prints where the operator must put renewed files, with the names that the systemd units expect. */
function nextStep({ kind, file }: CertificateView): string {
  const [copies, unit] =
    kind === "router"
      ? [`${file}.pem and, as router.key, ${file}.key`, "weiche-router"]
      : [`${file}.pem as node.pem and ${file}.key as node.key`, "weiche-node-agent"];
  return `Copy ${copies} to /etc/weiche on its host, then run there: systemctl reload ${unit} (restarts nothing)`;
}

function readDays(text: string): number {
  const days = Number(text);
  if (!Number.isInteger(days) || days < 1 || days > 36_500)
    throw new InvalidArgumentError("It must be a whole number of days from 1 to 36500.");
  return days;
}
