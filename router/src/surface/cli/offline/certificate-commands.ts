/** Commands for the certificates of routers and nodes. They work on files, and need no router. */
import { InvalidArgumentError, Option, type Command } from "commander";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { CertificateView, Making } from "../../../certificates/certificate-folder.ts";
import type { Actions } from "../actions.ts";
import { listText } from "../cli-text.ts";

interface Options {
  readonly dir: string;
  readonly days?: number;
  readonly within: number;
}

const columns = ["file", "names", "expiresAt", "daysLeft", "ofThisAuthority"];
const load = () => import("../../../certificates/certificate-folder.ts");

export function addCertificateCommands(group: Command, actions: Actions): void {
  const print = (made: readonly CertificateView[]) => actions.printList(made, columns);
  const makingOf = ({ dir, days }: Options): Making => ({ folder: dir, nowMs: systemClock.now(), days });

  command("ca", "the authority: once; keep its key off the hosts").action(async (options: Options) =>
    print([(await load()).makeAuthority(makingOf(options))]),
  );
  command("router", "for a router: every name and address that agents dial")
    .argument("<name...>")
    .action(async (names: [string, ...string[]], options: Options) =>
      print([(await load()).makeCertificate(makingOf(options), "router", names)]),
    );
  command("node", "for a node: its name in agent.yaml")
    .argument("<node>")
    .action(async (node: string, options: Options) =>
      print([(await load()).makeCertificate(makingOf(options), "node", [node])]),
    );
  command("renew", "anew with the same names: the files named, or all that expire soon")
    .argument("[file...]", "such as node-gpu-1")
    .addOption(new Option("--within <days>", "what expires within so many days").argParser(readDays).default(30))
    .action(async (files: string[], options: Options) => {
      const renewed = (await load()).renewCertificates(makingOf(options), files, options.within);
      actions.print(renewed, (width) =>
        renewed.length === 0
          ? `nothing expires within ${options.within} days`
          : [listText(renewed, columns, width), "", ...renewed.map(nextStep)].join("\n"),
      );
    });
  command("list", "what the authority has signed, and when it expires").action(async (options: Options) =>
    print((await load()).listCertificates(options.dir, systemClock.now())),
  );

  function command(name: string, description: string): Command {
    const made = group
      .command(name)
      .description(description)
      .requiredOption("--dir <folder>", "the authority's folder, such as /root/weiche-ca");
    if (name !== "list") made.addOption(new Option("--days <days>", "how long it is valid").argParser(readDays));
    return made;
  }
}

/** What is left to do with renewed files, by the names that the units expect. */
function nextStep({ kind, file }: CertificateView): string {
  const [copies, unit] =
    kind === "router"
      ? [`${file}.pem and, as router.key, ${file}.key`, "weiche-router"]
      : [`${file}.pem as node.pem and ${file}.key as node.key`, "weiche-node-agent"];
  return `put ${copies} into /etc/weiche of its host, and there: systemctl reload ${unit} (it restarts nothing)`;
}

function readDays(text: string): number {
  const days = Number(text);
  if (!Number.isInteger(days) || days < 1 || days > 36_500)
    throw new InvalidArgumentError("It must be whole days from 1.");
  return days;
}
