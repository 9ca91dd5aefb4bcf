import type { Secret } from '../../../api/client/client.ts';
import { usageError } from '../calling/command-errors.ts';
import { addList } from '../calling/lists.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { repeatable, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { shortTime, timeOr } from '../terminal/units.ts';

/** `svc secrets …` */
export function addSecretCommands(line: CommandLine): void {
  const group = line.group('secrets', 'set, list and delete secrets; nobody reads their values');
  line.add(group, 'set <name>', {
    // The value is not an argument, as every user of the machine could read it.
    description: 'set a secret to the content of standard input, without a final line break',
    options: {
      host: repeatable(
        'host',
        'host it may be sent to: a name, *.name or an address, optionally with :port; or * for any',
      ),
      task: repeatable('id', 'a task that may use it (default: all tasks of the namespace)'),
      expires: text(
        'time',
        'when it expires; from then on, steps that use it fail (default: never)',
      ),
    },
    examples: [
      'secrets set API_TOKEN --host api.example.com < token.txt',
      'printf %s "$TOKEN" | svc secrets set API_TOKEN --host api.example.com:443',
      'secrets set API_TOKEN --host api.example.com --expires 2027-01-31T12:00:00Z < token.txt',
    ],
    run: async (session, { host = [], task, expires }, [name = '']) => {
      const value = (await session.environment.input()).replace(/\r?\n$/, '');
      if (value === '') throw usageError('standard input is empty; pipe the value into it');
      const body = {
        value,
        allow_hosts: [...host],
        ...(task === undefined ? {} : { allow_tasks: [...task] }),
        ...(expires === undefined ? {} : { expires_at: expires }),
      };
      await session.show(
        (api) => api.secrets.set(name, body),
        (secret) => showSecret(session, secret),
      );
    },
  });
  addList(line, group, 'list', {
    description: 'list secrets by name, with their allowed hosts and tasks, expiry and last use',
    options: {
      until: text(
        'time',
        'only secrets that expire at or before this instant, the first to expire first',
      ),
    },
    examples: ['secrets list', '--namespace team-a secrets list'],
    path: async () => '/secrets',
    query: ({ until }) => ({ until }),
    columns: ({ clock }): readonly RecordColumn<Secret>[] => [
      { title: 'NAME', cell: ({ name }) => name },
      { title: 'NAMESPACE', cell: (secret) => secret.namespace },
      { title: 'VERSION', align: 'right', cell: ({ version }) => version },
      { title: 'HOSTS', maxWidth: 60, cell: hostsOf },
      { title: 'TASKS', maxWidth: 40, cell: tasksOf },
      { title: 'EXPIRES', cell: (secret) => expiryOf(secret, clock.now()) },
      { title: 'UPDATED', cell: ({ updated_at }) => shortTime(updated_at) },
      { title: 'LAST USED', cell: ({ last_used }) => shortTime(last_used?.at ?? null) },
    ],
    noun: 'secrets',
  });
  line.add(group, 'show <name>', {
    description: 'show a secret with its expiry and last use, but never its value',
    examples: ['secrets show API_TOKEN'],
    run: (session, _options, [name = '']) =>
      session.show(
        (api) => api.secrets.get(name),
        (secret) => showSecret(session, secret),
      ),
  });
  line.add(group, 'delete <name>', {
    description: 'delete a secret; steps that use it will fail',
    examples: ['secrets delete API_TOKEN'],
    run: (session, _options, [name = '']) => session.done((api) => api.secrets.remove(name)),
  });
  line.add(group, 'rotate-key', {
    description: 'encrypt all secrets with a new key, while the service runs (scope admin)',
    examples: ['secrets rotate-key'],
    run: async (session) => {
      await session.show(
        (api) => api.secrets.rotateKey(),
        ({ key_id, generated, resealed, unopened }) =>
          session.fields([
            ['key', `${key_id} (${generated ? 'generated' : 'the first of SVC_SECRETS_KEY'})`],
            ['resealed', resealed],
            ['cannot be decrypted', unopened.join(' ') || '(none)'],
          ]),
      );
    },
  });
}

function showSecret(session: Session, secret: Secret): string {
  const { last_used: used } = secret;
  return session.fields([
    ['name', secret.name],
    ['namespace', secret.namespace],
    ['version', secret.version],
    ['hosts', hostsOf(secret)],
    ['tasks', tasksOf(secret)],
    ['expires', expiryOf(secret, session.clock.now())],
    [
      'last used',
      used === null ? 'never' : `${shortTime(used.at)}, version ${used.version ?? '-'}`,
    ],
  ]);
}

/** When it expires, and whether it has expired. */
function expiryOf({ expires_at: at }: Secret, now: number): string {
  return at !== null && Date.parse(at) <= now ? `${shortTime(at)} (expired)` : timeOr(at, 'never');
}

const hostsOf = ({ allow_hosts }: Secret): string => allow_hosts.join(' ') || '(none)';
const tasksOf = ({ allow_tasks }: Secret): string =>
  allow_tasks === null ? '(all)' : allow_tasks.join(' ') || '(none)';
