import type { Secret } from '../../../api/client/client.ts';
import { usageError } from '../calling/command-errors.ts';
import { addList } from '../calling/lists.ts';
import type { RecordColumn } from '../calling/session.ts';
import { repeatable } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { shortTime } from '../terminal/units.ts';

/** `svc secrets …` */
export function addSecretCommands(line: CommandLine): void {
  const group = line.group('secrets', 'set, list and delete secrets; nobody reads their values');
  line.add(group, 'set <name>', {
    // As an argument, every user of the machine could read the value.
    description: 'set a secret to what standard input has, without a final line break',
    options: {
      host: repeatable(
        'host',
        'where it may be sent: a name, *.name, an address, with :port; or *',
      ),
      task: repeatable('id', 'a task that may use it (default: all of the namespace)'),
    },
    examples: [
      'secrets set API_TOKEN --host api.example.com < token.txt',
      'printf %s "$TOKEN" | svc secrets set API_TOKEN --host api.example.com:443',
    ],
    run: async (session, { host = [], task }, [name = '']) => {
      const value = (await session.environment.input()).replace(/\r?\n$/, '');
      if (value === '') throw usageError('standard input is empty; it must have the value');
      const body = {
        value,
        allow_hosts: [...host],
        ...(task === undefined ? {} : { allow_tasks: [...task] }),
      };
      await session.show(
        (api) => api.secrets.set(name, body),
        (secret) =>
          session.fields([
            ['name', secret.name],
            ['namespace', secret.namespace],
            ['version', secret.version],
            ['hosts', hostsOf(secret)],
            ['tasks', tasksOf(secret)],
          ]),
      );
    },
  });
  addList(line, group, 'list', {
    description: 'list secrets by name, with where they may be used and their last use',
    examples: ['secrets list', '--namespace team-a secrets list'],
    path: async () => '/secrets',
    query: () => ({}),
    columns: (): readonly RecordColumn<Secret>[] => [
      { title: 'NAME', cell: ({ name }) => name },
      { title: 'NAMESPACE', cell: (secret) => secret.namespace },
      { title: 'VERSION', align: 'right', cell: ({ version }) => version },
      { title: 'HOSTS', maxWidth: 60, cell: hostsOf },
      { title: 'TASKS', maxWidth: 40, cell: tasksOf },
      { title: 'UPDATED', cell: ({ updated_at }) => shortTime(updated_at) },
      { title: 'LAST USED', cell: ({ last_used }) => shortTime(last_used?.at ?? null) },
    ],
    noun: 'secrets',
  });
  line.add(group, 'delete <name>', {
    description: 'delete a secret; steps that use it fail from then on',
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
            ['cannot be opened', unopened.join(' ') || '(none)'],
          ]),
      );
    },
  });
}

const hostsOf = ({ allow_hosts }: Secret): string => allow_hosts.join(' ') || '(none)';
const tasksOf = ({ allow_tasks }: Secret): string =>
  allow_tasks === null ? '(all)' : allow_tasks.join(' ') || '(none)';
