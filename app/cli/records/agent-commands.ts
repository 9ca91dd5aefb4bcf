import type { Command } from 'commander';
import { usageFault } from '../calling/faults.ts';
import { addAsOf, addHistory, type AsOf } from './history-commands.ts';
import type { CommandLine } from '../program.ts';
import type { AgentRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';
import { several, wholeNumberOf } from '../terminal/values.ts';

/** `svc agents …` */
export function addAgentCommands(line: CommandLine): Command {
  const group = line.group('agents', 'lists, makes, changes and removes agents (scope admin)');
  addList(line, group);
  const show = group.command('show <id>').description('shows an agent');
  addAsOf(show);
  line.does<AsOf>(show, ['agents show 01a1fc11-…'], async (session, { asOf }, [id = '']) => {
    const query = { as_of: asOf };
    const agent = await session.client.ask((api) => api.agents.get(id, query));
    session.answer(agent, () => showAgent(session, agent));
  });
  addHistory(line, group, 'agents');
  addMaking(line, group);
  const remove = group
    .command('delete <id>')
    .description('removes an agent; its tokens stop working at once')
    .option('--cancel-tasks', 'and cancels its tasks');
  type Removing = { readonly cancelTasks?: boolean };
  const examples = ['agents delete 01a1fc11-…', 'agents delete 01a1fc11-… --cancel-tasks'];
  line.does<Removing>(remove, examples, async (session, { cancelTasks }, [id = '']) => {
    const query = { cancel_tasks: cancelTasks };
    const done = await session.client.ask((api) => api.agents.remove(id, query));
    session.answer(done, () => done.message);
  });
  addCredentials(line, group);
  return group;
}

const showAgent = (session: Session, agent: AgentRecord): string =>
  session.fields([
    ['id', agent.id],
    ['name', agent.name],
    ['scopes', agent.scopes.join(' ') || '(none)'],
    ['webhook', agent.webhook_url],
    ['created', shortTime(agent.created_at)],
    ['updated', shortTime(agent.updated_at)],
  ]);

function addList(line: CommandLine, group: Command): void {
  const list = group
    .command('list')
    .alias('ls')
    .description('lists agents, newest first')
    .option('--name <text>', 'those with a text in the name')
    .option('--scope <scope>', 'those with a scope')
    .option('--limit <n>', 'how many, 1 to 200 (50)', wholeNumberOf(1, 200))
    .option('--offset <n>', 'leaves out so many', wholeNumberOf(0, 999_999_999))
    .option('--view <name>', 'as of a moment: the views that `svc replay --into` made');
  interface Options {
    readonly name?: string;
    readonly scope?: string;
    readonly limit?: number;
    readonly offset?: number;
    readonly view?: string;
  }
  line.does<Options>(list, ['agents list --scope admin'], async (session, options) => {
    const { name, scope, limit, offset, view } = options;
    const query = { name_filter: name, scope_filter: scope, limit, offset, view };
    const agents = await session.client.ask((api) => api.agents.list(query));
    session.answer(agents, () =>
      session.table(
        [{ title: 'ID' }, { title: 'NAME', most: 40 }, { title: 'SCOPES' }, { title: 'CREATED' }],
        agents.map((each) => [
          each.id,
          each.name,
          each.scopes.join(' '),
          shortTime(each.created_at),
        ]),
        'no agents',
      ),
    );
  });
}

interface AgentOptions {
  readonly name?: string;
  readonly scope?: readonly string[];
  readonly webhookUrl?: string;
}

function addMaking(line: CommandLine, group: Command): void {
  const options = (command: Command): Command =>
    command
      .option('--scope <scope>', 'a scope, repeatable', several)
      .option('--webhook-url <url>', 'where it is told of its runs; "" for none');
  const create = group.command('create <name>').description('registers an agent, without a secret');
  const creating = ['agents create reporting --scope tasks:read --scope tasks:write'];
  line.does<AgentOptions>(options(create), creating, async (session, given, [name = '']) => {
    const body = { name, scopes: [], ...fieldsOf(given) };
    const agent = await session.client.ask((api) => api.agents.create(body));
    session.answer(agent, () => showAgent(session, agent));
    if (!session.json) session.aside(`a secret for it: svc agents credentials ${agent.id}`);
  });
  const update = group
    .command('update <id>')
    .description('changes the fields that are given; --scope sets all scopes')
    .option('--name <name>', 'another name');
  const examples = ['agents update 01a1fc11-… --scope tasks:read --scope runs:read'];
  line.does<AgentOptions>(options(update), examples, async (session, given, [id = '']) => {
    const body = fieldsOf(given);
    if (Object.keys(body).length === 0) throw usageFault('nothing to change was given');
    const agent = await session.client.ask((api) => api.agents.update(id, body));
    session.answer(agent, () => showAgent(session, agent));
  });
}

function fieldsOf({ name, scope, webhookUrl }: AgentOptions) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(scope === undefined ? {} : { scopes: [...scope] }),
    ...(webhookUrl === undefined ? {} : { webhook_url: webhookUrl === '' ? null : webhookUrl }),
  };
}

function addCredentials(line: CommandLine, group: Command): void {
  const credentials = group
    .command('credentials <id>')
    .description('gives an agent a new secret, shown this once; ends its sessions')
    // On the command line itself anybody on the machine could read it.
    .option('--secret-from-input', 'the secret is the first line of the standard input');
  type Options = { readonly secretFromInput?: boolean };
  const examples = [
    'agents credentials 01a1fc11-…',
    'agents credentials 01a1fc11-… --secret-from-input < secret.txt',
  ];
  line.does<Options>(credentials, examples, async (session, { secretFromInput }, [id = '']) => {
    const given = secretFromInput === true ? await session.surroundings.input() : undefined;
    const [agent_secret = ''] = given?.split(/\r?\n/, 1) ?? [];
    const body = given === undefined ? {} : { agent_secret };
    const made = await session.client.ask((api) => api.agents.setCredentials(id, body));
    session.answer(made, () =>
      session.fields([
        ['id', made.agent_id],
        ['secret', made.agent_secret],
      ]),
    );
  });
}
