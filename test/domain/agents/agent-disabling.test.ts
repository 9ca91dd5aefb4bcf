import { expect } from 'chai';
import { disableAgentCommand, enableAgentCommand } from '../../../domain/agents/agent-disabling.ts';
import { agentFold, requireAgent } from '../../../domain/agents/agent.ts';
import { registerAgentCommand } from '../../../domain/agents/agent-registration.ts';
import {
  ownerDenial,
  startDenial,
  stepDenial,
  type Denial,
} from '../../../domain/agents/permissions.ts';
import { load } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { commandContext, rejection, START } from '../given.ts';
import { MemoryLog, unavailable } from '../memory-log.ts';

const minute = 60_000;

describe('an agent that is disabled', () => {
  let store: MemoryLog;
  beforeEach(async () => {
    store = new MemoryLog();
    for (const id of ['a', 'b']) {
      const fields = { name: `agent ${id}`, scopes: ['admin'], webhook_url: null };
      await registerAgentCommand(store, id, fields, null, commandContext(`register-${id}`));
    }
  });

  async function* admins(): AsyncGenerator<string> {
    yield* ['a', 'b'];
  }
  const disable = (id: string, now = START, runs: 'finish' | 'cancel' = 'finish') =>
    disableAgentCommand({
      store,
      agentId: id,
      runs,
      others: admins,
      context: commandContext(`disable-${id}-${runs}-${now}`, now),
    });
  const enable = (id: string) => enableAgentCommand(store, id, 'skip', commandContext(`on-${id}`));
  const stateOf = async (id: string) => (await load(store, streams.agent(id), agentFold)).state;
  const enabled = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const id of ['a', 'b']) {
      if (requireAgent(await stateOf(id)).disabled === null) found.push(id);
    }
    return found;
  };

  it('is never the last enabled admin', async () => {
    await disable('b');
    expect(await rejection(disable('a'))).to.include({ code: 'STATE_CONFLICT' });
    await enable('b');
    await disable('a');
    expect(await enabled()).to.deep.equal(['b']);
  });

  it('leaves one enabled admin if two disable each other at once', async () => {
    const results = await Promise.allSettled([disable('a'), disable('b')]);
    expect(results.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected']);
    expect(await enabled()).to.have.length(1);
  });

  for (const append of [1, 2]) {
    it(`is disabled completely or not at all if the process dies in place of append ${append}`, async () => {
      const last = store.asked + append;
      store.onAppend = (_append, asked) => {
        if (asked >= last) throw unavailable();
      };
      await rejection(disable('b'));
      store.onAppend = () => {};
      expect(await enabled()).to.deep.equal(['a', 'b']);
      // The announcement that is left behind becomes void after a minute.
      await disable('a', START + 2 * minute);
      expect(await enabled()).to.deep.equal(['b']);
    });
  }

  it('starts nothing new, and its runs may finish unless they are to be canceled', async () => {
    const codes = async (rule: typeof startDenial): Promise<Denial['code'] | undefined> =>
      rule('b', await stateOf('b'))?.code;
    expect(await codes(startDenial)).to.equal(undefined);
    await disable('b');
    expect([await codes(startDenial), await codes(stepDenial)]).to.deep.equal([
      'agent_disabled',
      undefined,
    ]);
    await disable('b', START, 'cancel');
    expect(await codes(stepDenial)).to.equal('agent_disabled');
    // Its tasks are held back, not paused.
    expect(await codes(ownerDenial)).to.equal(undefined);
  });
});
