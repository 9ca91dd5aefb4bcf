import { expect } from 'chai';
import fc from 'fast-check';
import { agentFold, agentNameFold, removeAgent } from '../../../domain/agents/agent.ts';
import {
  registerAgentCommand,
  releaseAgentName,
  updateAgentCommand,
} from '../../../domain/agents/agent-registration.ts';
import { decorate } from '../../../domain/decorate.ts';
import { RefusalError } from '../../../domain/errors.ts';
import { EventStoreError, type EventStore } from '../../../domain/event-store.ts';
import { handle, load, type CommandContext } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { commandContext, START } from '../given.ts';
import { MemoryLog } from '../memory-log.ts';

const MINUTE = 60_000;
const agents = ['x', 'y'];
const names = ['a', 'b', 'c'];

/** A request of one caller among several concurrent ones. */
type Wish =
  | {
      readonly kind: 'rename';
      readonly agent: string;
      readonly name: string;
      readonly late: boolean;
    }
  | {
      readonly kind: 'register';
      readonly agent: string;
      readonly name: string;
      readonly late: boolean;
    }
  | { readonly kind: 'remove'; readonly agent: string; readonly late: boolean };

const agent = fc.constantFrom(...agents);
const name = fc.constantFrom(...names);
/** Includes a clock that is a minute ahead, for which a new reservation already counts as abandoned. */
const late = fc.boolean();
const wish: fc.Arbitrary<Wish> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('rename' as const), agent, name, late }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('register' as const),
      agent: fc.constantFrom('z', 'w'),
      name,
      late,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), agent, late }) },
);

/** A log whose responses arrive in an order that fast-check's scheduler chooses. */
function inAnyOrder(log: MemoryLog, scheduler: fc.Scheduler): EventStore {
  const turn = (): Promise<unknown> => scheduler.schedule(Promise.resolve());
  return decorate<EventStore>(log, {
    append: async (...given) => {
      await turn();
      return log.append(...given);
    },
    readStream: async (...given) => {
      const read = await log.readStream(...given);
      await turn();
      return read;
    },
  });
}

async function grant(store: EventStore, wished: Wish, context: CommandContext): Promise<void> {
  const id = wished.agent;
  if (wished.kind === 'rename') {
    await updateAgentCommand(store, id, { name: wished.name }, context);
  } else if (wished.kind === 'register') {
    const fields = { name: wished.name, scopes: [], webhook_url: null };
    await registerAgentCommand(store, id, fields, null, context);
  } else {
    const stream = streams.agent(id);
    const { state } = await load(store, stream, agentFold);
    await handle({ store, stream, fold: agentFold, decide: removeAgent, context });
    if (state.status === 'registered') await releaseAgentName(store, state, id, context);
  }
}

describe('names of agents', () => {
  it('are each held by the agent that has the name, whatever renames are concurrent', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(wish, { minLength: 2, maxLength: 5 }),
        async (scheduler, wishes) => {
          const log = new MemoryLog();
          for (const [index, id] of agents.entries()) {
            const fields = { name: names[index] ?? '', scopes: [], webhook_url: null };
            await registerAgentCommand(log, id, fields, null, commandContext(`first-${id}`, START));
          }
          const store = inAnyOrder(log, scheduler);
          const all = wishes.map(async (wished, index) => {
            const now = START + (wished.late ? 2 * MINUTE : 1000);
            try {
              await grant(store, wished, commandContext(`wish-${index}`, now));
            } catch (error) {
              // The command was refused, or lost each race.
              if (!(error instanceof RefusalError || error instanceof EventStoreError)) throw error;
            }
          });
          await scheduler.waitFor(Promise.all(all));
          const had = new Set<string>();
          for (const id of [...agents, 'z', 'w']) {
            const { state } = await load(log, streams.agent(id), agentFold);
            if (state.status !== 'registered') continue;
            expect(had.has(state.name), `two are called ${state.name}`).to.equal(false);
            had.add(state.name);
            const holder = await load(log, streams.agentName('default', state.name), agentNameFold);
            expect(holder.state?.agent_id, `the holder of ${state.name}`).to.equal(id);
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
