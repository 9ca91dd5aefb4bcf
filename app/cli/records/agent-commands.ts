import type { Agent } from '../../../api/client/client.ts';
import { usageError } from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';
import { asOf, choice, flag, repeatable, text, view, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { shortTime } from '../terminal/units.ts';
import { disabledRuns, misfirePolicies } from '../../../domain/vocabulary.ts';
import { namespaceColumn } from './namespace-commands.ts';
import { addHistory } from './history-commands.ts';

const fields = {
  scope: repeatable('scope', 'a scope'),
  webhookUrl: text('url', 'address for messages about its runs; "" for none'),
};

/** `svc agents …` */
export function addAgentCommands(line: CommandLine): void {
  const group = line.group('agents', 'list, create, change and remove agents (scope admin)');
  line.add(group, 'list', {
    description: 'list agents, newest first',
    options: {
      name: text('text', 'agents with this text in the name'),
      scope: text('scope', 'agents with this scope'),
      limit: wholeNumber('n', 'number of agents, 1-200 (default: 50)', 1, 200),
      offset: wholeNumber('n', 'number of agents to leave out', 0, 999_999_999),
      view,
    },
    examples: ['agents list --scope admin'],
    run: async (session, { name, scope, ...rest }) => {
      const query = { name_filter: name, scope_filter: scope, ...rest };
      const agents = await session.client.call((api) => api.agents.list(query));
      session.answer(agents, () =>
        session.table<Agent>(
          [
            { title: 'ID', cell: ({ id }) => id },
            { title: 'NAME', maxWidth: 40, cell: ({ name: title }) => title },
            ...namespaceColumn(agents),
            { title: 'SCOPES', cell: ({ scopes }) => scopes.join(' ') },
            { title: 'CREATED', cell: ({ created_at }) => shortTime(created_at) },
            {
              title: 'DISABLED',
              cell: ({ disabled }) => (disabled ? shortTime(disabled.since) : ''),
            },
          ],
          agents,
          'no agents',
        ),
      );
    },
  });
  line.add(group, 'show <id>', {
    description: 'show an agent',
    options: { asOf },
    examples: ['agents show 01a1fc11-…'],
    run: (session, { asOf: as_of }, [id = '']) =>
      session.show(
        (api) => api.agents.get(id, { as_of }),
        (agent) => showAgent(session, agent),
      ),
  });
  addHistory(line, group, 'agents');
  line.add(group, 'create <name>', {
    description: 'register an agent, without a secret',
    options: fields,
    examples: ['agents create reporting --scope tasks:read --scope tasks:write'],
    run: async (session, options, [name = '']) => {
      const { namespace } = session;
      const place = namespace === undefined ? {} : { namespace };
      const body = { name, scopes: [], ...bodyOf(options), ...place };
      const agent = await session.client.call((api) => api.agents.create(body));
      session.answer(agent, () => showAgent(session, agent));
      if (!session.json) session.aside(`to create its secret: svc agents credentials ${agent.id}`);
    },
  });
  line.add(group, 'update <id>', {
    description: 'change the given fields; --scope replaces all scopes',
    options: { name: text('name', 'a new name'), ...fields },
    examples: ['agents update 01a1fc11-… --scope tasks:read --scope runs:read'],
    run: async (session, options, [id = '']) => {
      const body = bodyOf(options);
      if (Object.keys(body).length === 0) throw usageError('give at least one field to change');
      await session.show(
        (api) => api.agents.update(id, body),
        (agent) => showAgent(session, agent),
      );
    },
  });
  line.add(group, 'delete <id>', {
    description: 'remove an agent; its tokens stop working immediately',
    options: { cancelTasks: flag('cancel its tasks too') },
    examples: ['agents delete 01a1fc11-…', 'agents delete 01a1fc11-… --cancel-tasks'],
    run: (session, { cancelTasks: cancel_tasks }, [id = '']) =>
      session.done((api) => api.agents.remove(id, { cancel_tasks })),
  });
  line.add(group, 'disable <id>', {
    description:
      'stop an agent: its tokens, keys, sessions, tasks and workers, until it is enabled',
    options: { runs: choice('what', 'what happens to its runs (default: finish)', disabledRuns) },
    examples: ['agents disable 01a1fc11-…', 'agents disable 01a1fc11-… --runs cancel'],
    run: (session, { runs }, [id = '']) =>
      session.show(
        (api) => api.agents.disable(id, { runs }),
        (agent) => showAgent(session, agent),
      ),
  });
  line.add(group, 'enable <id>', {
    description: 'enable an agent; it must sign in again, and its API keys work again',
    options: {
      missed: choice('policy', 'what happens to missed fires (default: skip)', misfirePolicies),
    },
    examples: ['agents enable 01a1fc11-…', 'agents enable 01a1fc11-… --missed latest'],
    run: (session, { missed }, [id = '']) =>
      session.show(
        (api) => api.agents.enable(id, { missed }),
        (agent) => showAgent(session, agent),
      ),
  });
  line.add(group, 'credentials <id>', {
    description: 'give an agent a new secret, shown once, and end its sessions',
    // As an argument, every user of the machine could read the secret.
    options: {
      secretFromInput: flag('read the secret from the first line of standard input'),
    },
    examples: [
      'agents credentials 01a1fc11-…',
      'agents credentials 01a1fc11-… --secret-from-input < secret.txt',
    ],
    run: async (session, { secretFromInput = false }, [id = '']) => {
      const input = secretFromInput ? await session.environment.input() : undefined;
      const body = input === undefined ? {} : { agent_secret: input.split(/\r?\n/, 1)[0] ?? '' };
      await session.show(
        (api) => api.agents.setCredentials(id, body),
        ({ agent_id, agent_secret }) =>
          session.fields([
            ['id', agent_id],
            ['secret', agent_secret],
          ]),
      );
    },
  });
}

function showAgent(session: Session, agent: Agent): string {
  return session.fields([
    ['id', agent.id],
    ['name', agent.name],
    ['namespace', agent.namespace ?? null],
    ['scopes', agent.scopes.join(' ') || '(none)'],
    ['webhook', agent.webhook_url],
    ['disabled', disabledText(agent)],
    ['created', shortTime(agent.created_at)],
    ['updated', shortTime(agent.updated_at)],
  ]);
}

/** Since when and by whom an agent has been disabled, and what happens to its runs. null for an enabled agent. */
function disabledText({ disabled }: Agent): string | null {
  if (disabled === null) return null;
  const { since, by, runs } = disabled;
  return `since ${shortTime(since)}, by ${by}; its runs ${runs === 'finish' ? 'finish' : 'are canceled'}`;
}

function bodyOf({
  name,
  scope,
  webhookUrl,
}: {
  readonly name?: string | undefined;
  readonly scope: readonly string[] | undefined;
  readonly webhookUrl: string | undefined;
}) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(scope === undefined ? {} : { scopes: [...scope] }),
    ...(webhookUrl === undefined ? {} : { webhook_url: webhookUrl === '' ? null : webhookUrl }),
  };
}
