import { Option, type Command } from 'commander';
import { webhookStates, webhookTypes } from '../../../domain/vocabulary.ts';
import { usageFault } from '../calling/faults.ts';
import { addPaging, listAll, shownOf, type Paging } from '../calling/listing.ts';
import type { DeliveryRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import type { CommandLine } from '../program.ts';
import { paintState } from '../terminal/paint.ts';
import { shortTime } from '../terminal/times.ts';
import { part } from '../terminal/values.ts';

/** `svc webhooks …`: what an agent's webhook is told, and by which secret. */
export function addWebhookCommands(line: CommandLine): Command {
  const group = line.group(
    'webhooks',
    "tests agents' webhooks, lists and repeats deliveries (scope admin)",
  );
  addSecret(line, group);
  addTest(line, group);
  addList(line, group);
  addRepeat(line, group);
  return group;
}

function addSecret(line: CommandLine, group: Command): void {
  const secret = group
    .command('secret [agent]')
    .description(
      "gives an agent's webhook (the caller's) a new secret, shown this once; the old one signs a day longer",
    );
  const examples = ['webhooks secret', 'webhooks secret 01a1fc11-…'];
  line.does(secret, examples, async (session, _, [given]) => {
    const agent = await agentOf(session, given);
    const made = await session.client.ask((api) => api.webhooks.newSecret(agent));
    session.answer(made, () =>
      session.fields([
        ['id', made.agent_id],
        ['secret', made.webhook_secret],
        ['version', made.version],
      ]),
    );
  });
}

function addTest(line: CommandLine, group: Command): void {
  const test = group
    .command('test [agent]')
    .description("sends an agent's webhook (the caller's) a message that tells nothing");
  const examples = ['webhooks test', 'webhooks test 01a1fc11-…'];
  line.does(test, examples, async (session, _, [given]) => {
    const agent = await agentOf(session, given);
    const done = await session.client.ask((api) => api.webhooks.test(agent));
    session.answer(done, () => `${done.message}: ${done.details.delivery_id}`);
    if (!session.json) session.aside(`what it is answered: svc webhooks list ${agent}`);
  });
}

interface ListOptions extends Paging {
  readonly state?: string;
  readonly type?: string;
}

function addList(line: CommandLine, group: Command): void {
  const list = group
    .command('list [agent]')
    .alias('ls')
    .description("what was sent to an agent's webhook (the caller's) and answered, newest first")
    .addOption(new Option('--state <state>').choices([...webhookStates]))
    .addOption(new Option('--type <type>').choices([...webhookTypes]));
  addPaging(list);
  const examples = ['webhooks list', 'webhooks list 01a1fc11-… --state failed --type run.failed'];
  line.does<ListOptions>(list, examples, async (session, options, [given]) => {
    const { state, type } = options;
    const path = `/agents/${part(await agentOf(session, given))}/webhooks/deliveries`;
    const page = await listAll<DeliveryRecord>(session.client, path, { state, type }, options);
    session.answer(page, () => {
      const shown = session.table(
        [
          { title: 'ID' },
          { title: 'TYPE' },
          { title: 'RUN OR TASK' },
          { title: 'STATE', paint: (text, cell) => paintState(session.paint, cell, text) },
          { title: 'CREATED' },
          { title: 'ATTEMPT', align: 'right' },
          { title: 'NEXT ATTEMPT' },
          { title: 'ANSWER', most: 60 },
        ],
        page.items.map((each) => [
          each.id,
          each.type,
          each.run_id ?? each.task_id,
          each.state,
          shortTime(each.created_at),
          each.attempts.at(-1)?.attempt ?? 0,
          shortTime(each.next_attempt_at),
          answerOf(each),
        ]),
        'no deliveries',
      );
      return `${shown}${shownOf(session, page, 'deliveries')}`;
    });
  });
}

/** What came of the latest attempt; of a delivery that has failed also why it is not tried again. */
function answerOf({ attempts, end }: DeliveryRecord): string {
  const latest = attempts.at(-1);
  const said = latest === undefined ? '' : (latest.error ?? String(latest.status));
  return [end, said].filter((text) => text !== null && text !== '').join(': ');
}

function addRepeat(line: CommandLine, group: Command): void {
  const repeat = group
    .command('repeat <delivery>')
    .description('sends a message again that was delivered or has failed, with the same id')
    .option('--agent <id>', 'whose delivery it is (the caller)');
  const examples = [
    'webhooks repeat 5f4c9a1e-…',
    'webhooks repeat 5f4c9a1e-… --agent 01a1fc11-… --reason "the receiver is back"',
  ];
  type Options = { readonly agent?: string };
  line.does<Options>(repeat, examples, async (session, { agent: given }, [delivery = '']) => {
    if (delivery === '') throw usageFault('the id of the delivery is empty');
    const agent = await agentOf(session, given);
    const done = await session.client.ask((api) => api.webhooks.repeat(agent, delivery));
    session.answer(done, () => done.message);
  });
}

/**
 * The agent that is named, and else the caller.
 * @throws CommandFault for an empty name, as of a shell's variable that is not set: the caller was not meant
 */
async function agentOf(session: Session, given: string | undefined): Promise<string> {
  if (given === '') throw usageFault('the id of the agent is empty; without one it is the caller');
  return given ?? session.caller();
}
