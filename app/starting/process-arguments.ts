/** The work of a process of the service, by its arguments. */
export type ProcessAction =
  | { readonly kind: 'serve' | 'command line' | 'demo' | 'help' | 'version' }
  | { readonly kind: 'reject'; readonly message: string };

const actions: Readonly<Record<string, ProcessAction>> = {
  demo: { kind: 'demo' },
  '-h': { kind: 'help' },
  '--help': { kind: 'help' },
  '-V': { kind: 'version' },
  '--version': { kind: 'version' },
};

/** The output of `task-scheduling-service --help`. */
export const help = `Usage: task-scheduling-service [command]

Without a command, starts the service. Environment variables configure it:

  SVC_HOST      the address to listen on (default: 127.0.0.1)
  SVC_PORT      the port to listen on (default: 8080)
  SVC_DATA_DIR  the folder for data (default: ./data)
  SVC_ROLES     what this process does (default: api,projector,scheduler,worker)

docs/reference/configuration.md in the repository lists all of them.

Commands:
  svc <command>  the command line: tasks, runs, agents, events; see svc --help
  demo           starts a service on a temporary store, runs some tasks, deletes it all

Options:
  -h, --help     print this help
  -V, --version  print the version
`;

/**
 * Reads the arguments of `task-scheduling-service`. The arguments after `svc` belong to the command line.
 * @param words without Node's own and the program's name
 */
export function parseArguments(words: readonly string[]): ProcessAction {
  const [first, ...rest] = words;
  if (first === undefined) return { kind: 'serve' };
  if (first === 'svc') return { kind: 'command line' };
  const action = actions[first];
  const [unknown] = action === undefined ? words : rest;
  if (action !== undefined && unknown === undefined) return action;
  const what = `unknown argument ${JSON.stringify(unknown)}`;
  const advice = 'settings are environment variables such as SVC_PORT; see --help';
  return { kind: 'reject', message: `task-scheduling-service: ${what}; ${advice}` };
}
