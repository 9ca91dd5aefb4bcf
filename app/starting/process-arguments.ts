/** What a process of the service does, by its arguments. */
export type Errand =
  | { readonly kind: 'serve' | 'command line' | 'demo' | 'help' | 'version' }
  | { readonly kind: 'refuse'; readonly message: string };

const errands: Readonly<Record<string, Errand>> = {
  demo: { kind: 'demo' },
  '-h': { kind: 'help' },
  '--help': { kind: 'help' },
  '-V': { kind: 'version' },
  '--version': { kind: 'version' },
};

/** What `task-scheduling-service --help` prints. */
export const help = `Usage: task-scheduling-service [command]

Without a command, starts the service. Environment variables configure it:

  SVC_HOST      the address to listen on (default: 127.0.0.1)
  SVC_PORT      the port to listen on (default: 8080)
  SVC_DATA_DIR  the folder for data (default: ./data)
  SVC_ROLES     what this process does (default: api,projector,scheduler,worker)

docs/configuration.md in the repository lists all of them.

Commands:
  svc <command>  the command line: tasks, runs, agents, events; see svc --help
  demo           starts a service on a temporary store, runs some tasks, deletes it all

Options:
  -h, --help     print this help
  -V, --version  print the version
`;

/**
 * Reads the arguments of `task-scheduling-service`. `svc` leaves all further ones to the command line.
 *
 * @param words the arguments, without Node's own and the name of the program
 */
export function errandOf(words: readonly string[]): Errand {
  const [first, ...rest] = words;
  if (first === undefined) return { kind: 'serve' };
  if (first === 'svc') return { kind: 'command line' };
  const errand = errands[first];
  const [unknown] = errand === undefined ? words : rest;
  if (errand !== undefined && unknown === undefined) return errand;
  const what = `unknown argument ${JSON.stringify(unknown)}`;
  const remedy = 'settings are environment variables such as SVC_PORT; see --help';
  return { kind: 'refuse', message: `task-scheduling-service: ${what}; ${remedy}` };
}
