import { expect } from 'chai';
import { agentFold, agentNameFold } from '../../../domain/agents/agent.ts';
import {
  registerAgentCommand,
  releaseAgentName,
  updateAgentCommand,
} from '../../../domain/agents/agent-registration.ts';
import { load, handle } from '../../../domain/handle.ts';
import { removeAgent } from '../../../domain/agents/agent.ts';
import { streams } from '../../../domain/streams.ts';
import { commandContext, rejection, START } from '../given.ts';
import { MemoryLog, unavailable } from '../memory-log.ts';

const fields = (name: string): { name: string; scopes: string[]; webhook_url: null } => ({
  name,
  scopes: [],
  webhook_url: null,
});
const minute = 60_000;

describe('registering an agent', () => {
  let store: MemoryLog;

  const register = (
    agentId: string,
    name: string,
    commandId = `register-${agentId}`,
    now = START,
  ): Promise<unknown> =>
    registerAgentCommand(store, agentId, fields(name), null, commandContext(commandId, now));

  const holderOf = async (name: string): Promise<string | undefined> =>
    (await load(store, streams.agentName('default', name), agentNameFold)).state?.agent_id;

  const statusOf = async (agentId: string): Promise<string> =>
    (await load(store, streams.agent(agentId), agentFold)).state.status;

  /** Makes the process die in place of its n-th append from now. */
  const dieAt = (n: number): void => {
    const last = store.asked + n;
    store.onAppend = (_append, asked) => {
      if (asked >= last) throw unavailable();
    };
  };
  const restart = (): void => {
    store.onAppend = () => {};
  };

  beforeEach(() => {
    store = new MemoryLog();
  });

  it('reserves its name, and then creates the agent', async () => {
    await register('a', 'sweeper');
    expect(await holderOf('sweeper')).to.equal('a');
    expect(await statusOf('a')).to.equal('registered');
  });

  it('refuses a name that another agent has', async () => {
    await register('a', 'sweeper');
    expect(await rejection(register('b', 'sweeper'))).to.include({ code: 'STATE_CONFLICT' });
    expect(await rejection(register('b', 'sweeper', 'x', START + 10 * minute))).to.include({
      code: 'STATE_CONFLICT',
    });
    expect(await statusOf('b')).to.equal('none');
  });

  it('lets one of many concurrent registrations win a name', async () => {
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].map((id) => register(id, 'sweeper')),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(1);
  });

  it('lets the next agent have a released name', async () => {
    await register('a', 'sweeper');
    await handle({
      store,
      stream: streams.agent('a'),
      fold: agentFold,
      decide: removeAgent,
      context: commandContext('remove'),
    });
    await releaseAgentName(
      store,
      { namespace: 'default', name: 'sweeper' },
      'a',
      commandContext('remove'),
    );
    await register('b', 'sweeper');
    expect(await holderOf('sweeper')).to.equal('b');
  });

  describe('that died between its two appends', () => {
    beforeEach(async () => {
      dieAt(2);
      await rejection(register('a', 'sweeper'));
      restart();
      expect(await holderOf('sweeper')).to.equal('a');
      expect(await statusOf('a')).to.equal('none');
    });

    it('is completed by repeating the command', async () => {
      await register('a', 'sweeper', 'register-a', START + minute);
      expect(await statusOf('a')).to.equal('registered');
      expect(store.typesOf(streams.agentName('default', 'sweeper'))).to.deep.equal([
        'NameReserved',
      ]);
    });

    it('keeps the name for a minute', async () => {
      const early = register('b', 'sweeper', 'b', START + minute - 1);
      expect(await rejection(early)).to.include({ code: 'STATE_CONFLICT' });
    });

    it('loses the name after a minute to the next agent, for which it is then reserved', async () => {
      await register('b', 'sweeper', 'b', START + minute);
      expect(await holderOf('sweeper')).to.equal('b');
      expect(await statusOf('a')).to.equal('abandoned');
      expect(await statusOf('b')).to.equal('registered');
      expect(store.typesOf(streams.agentName('default', 'sweeper'))).to.deep.equal([
        'NameReserved',
        'NameReleased',
        'NameReserved',
      ]);
    });

    it('fails cleanly when it continues after it was voided', async () => {
      await register('b', 'sweeper', 'b', START + minute);
      expect(await rejection(register('a', 'sweeper'))).to.include({ code: 'STATE_CONFLICT' });
      expect(await holderOf('sweeper')).to.equal('b');
      expect(await statusOf('a')).to.equal('abandoned');
    });

    for (const n of [1, 2, 3, 4]) {
      it(`is also voided by a process that dies in place of append ${n} and is restarted`, async () => {
        dieAt(n);
        await rejection(register('b', 'sweeper', 'b', START + minute));
        restart();
        await register('b', 'sweeper', 'b', START + minute);
        expect(await holderOf('sweeper')).to.equal('b');
        expect(await statusOf('b')).to.equal('registered');
      });
    }

    it('keeps the name if it is completed just before it would be voided', async () => {
      store.onAppend = async ({ events }) => {
        if (events[0]?.type !== 'Abandoned') return;
        restart();
        await register('a', 'sweeper');
      };
      const late = register('b', 'sweeper', 'b', START + minute);
      expect(await rejection(late)).to.include({ code: 'STATE_CONFLICT' });
      expect(await holderOf('sweeper')).to.equal('a');
      expect(await statusOf('a')).to.equal('registered');
    });
  });

  describe('and renaming it', () => {
    const renameTo = (name: string, commandId = 'rename', now = START): Promise<unknown> =>
      updateAgentCommand(store, 'a', { name }, commandContext(commandId, now));

    beforeEach(async () => {
      await register('a', 'sweeper');
    });

    it('takes the new name and releases the old one', async () => {
      await renameTo('mopper');
      expect(await holderOf('mopper')).to.equal('a');
      expect(await holderOf('sweeper')).to.equal(undefined);
    });

    it('reserves nothing if the agent is at another revision', async () => {
      const outcome = updateAgentCommand(store, 'a', { name: 'mopper' }, commandContext('c'), 5);
      expect(await rejection(outcome)).to.include({ code: 'REVISION_MISMATCH' });
      expect(await holderOf('mopper')).to.equal(undefined);
    });

    it('leaves no name permanently reserved if the process dies between two appends', async () => {
      for (const n of [2, 3]) {
        dieAt(n);
        await rejection(renameTo(`new-${n}`, `rename-${n}`));
        restart();
      }
      // A death before the change leaves the new name reserved without a user, and a death after it the old name.
      expect(await holderOf('new-2')).to.equal('a');
      expect(await holderOf('sweeper')).to.equal('a');
      expect(await holderOf('new-3')).to.equal('a');
      await register('b', 'new-2', 'b', START + minute);
      await register('c', 'sweeper', 'c', START + minute);
      expect(await holderOf('new-2')).to.equal('b');
      expect(await holderOf('sweeper')).to.equal('c');
      expect(await rejection(register('d', 'new-3', 'd', START + minute))).to.include({
        code: 'STATE_CONFLICT',
      });
    });
  });
});
