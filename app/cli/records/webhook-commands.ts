import type { WebhookDelivery } from '../../../api/client/client.ts';
import { webhookStates, webhookTypes } from '../../../domain/vocabulary.ts';
import { usageError } from '../calling/command-errors.ts';
import { addList } from '../calling/lists.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { choice, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { statePainter } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';

/** `svc webhooks …` */
export function addWebhookCommands(line: CommandLine): void {
  const group = line.group('webhooks', 'test webhooks, list and repeat deliveries (scope admin)');
  line.add(group, 'secret [agent]', {
    description:
      "give an agent's webhook (default: the caller's) a new secret, shown once; the old one signs for another day",
    examples: ['webhooks secret', 'webhooks secret 01a1fc11-…'],
    run: async (session, _, [given]) => {
      const agent = await agentOf(session, given);
      await session.show(
        (api) => api.webhooks.newSecret(agent),
        ({ agent_id, webhook_secret, version }) =>
          session.fields([
            ['id', agent_id],
            ['secret', webhook_secret],
            ['version', version],
          ]),
      );
    },
  });
  line.add(group, 'test [agent]', {
    description: "send a test message to an agent's webhook (default: the caller's)",
    examples: ['webhooks test', 'webhooks test 01a1fc11-…'],
    run: async (session, _, [given]) => {
      const agent = await agentOf(session, given);
      await session.show(
        (api) => api.webhooks.test(agent),
        ({ message, details }) => `${message}: ${details.delivery_id}`,
      );
      if (!session.json) session.aside(`to see the response: svc webhooks list ${agent}`);
    },
  });
  addList(line, group, 'list [agent]', {
    description: "list an agent's deliveries (default: the caller's), newest first",
    options: {
      state: choice('state', 'deliveries in this state', webhookStates),
      type: choice('type', 'messages of this type', webhookTypes),
    },
    examples: ['webhooks list', 'webhooks list 01a1fc11-… --state failed --type run.failed'],
    path: async ([given], session) =>
      `/agents/${pathSegment(await agentOf(session, given))}/webhooks/deliveries`,
    query: ({ state, type }) => ({ state, type }),
    columns: ({ paint }): readonly RecordColumn<WebhookDelivery>[] => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'TYPE', cell: ({ type }) => type },
      { title: 'RUN OR TASK', cell: ({ run_id, task_id }) => run_id ?? task_id },
      { title: 'STATE', cell: ({ state }) => state, paint: statePainter(paint) },
      { title: 'CREATED', cell: ({ created_at }) => shortTime(created_at) },
      { title: 'ATTEMPT', align: 'right', cell: (each) => each.attempts.at(-1)?.attempt ?? 0 },
      { title: 'NEXT ATTEMPT', cell: ({ next_attempt_at }) => shortTime(next_attempt_at) },
      { title: 'ANSWER', maxWidth: 60, cell: responseOf },
    ],
    noun: 'deliveries',
  });
  line.add(group, 'repeat <delivery>', {
    description: 'send a delivered or failed message again, with the same id',
    options: { agent: text('id', 'the agent of the delivery (default: the caller)') },
    examples: [
      'webhooks repeat 5f4c9a1e-…',
      'webhooks repeat 5f4c9a1e-… --agent 01a1fc11-… --reason "the receiver is back"',
    ],
    run: async (session, { agent: given }, [delivery = '']) => {
      if (delivery === '') throw usageError('the id of the delivery is empty');
      const agent = await agentOf(session, given);
      await session.done((api) => api.webhooks.repeat(agent, delivery));
    },
  });
}

/** The response to the latest attempt; for a failed delivery also why it is not retried. */
function responseOf({ attempts, end }: WebhookDelivery): string {
  const latest = attempts.at(-1);
  const response = latest === undefined ? '' : (latest.error ?? String(latest.status));
  return [end, response].filter((part) => part !== null && part !== '').join(': ');
}

/**
 * The named agent, or the caller.
 * @throws CommandError for an empty name, as from an unset shell variable: it does not mean the caller
 */
async function agentOf(session: Session, given: string | undefined): Promise<string> {
  if (given === '') throw usageError("the agent's id is empty; leave it out to mean the caller");
  return given ?? session.caller();
}
