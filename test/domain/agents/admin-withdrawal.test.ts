import { expect } from 'chai';
import { withdrawAdmin } from '../../../domain/agents/admin-withdrawal.ts';
import { agentFold, removeAgent } from '../../../domain/agents/agent.ts';
import {
  registerAgentCommand,
  updateAgentCommand,
} from '../../../domain/agents/agent-registration.ts';
import { RefusalError } from '../../../domain/errors.ts';
import { handle, load, revisionMismatch } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { commandContext, rejection, START } from '../given.ts';
import { MemoryLog, unavailable } from '../memory-log.ts';

const minute = 60_000;

describe('withdrawing the scope admin', () => {
  let store: MemoryLog;
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];

  const make = async (...ids: readonly string[]): Promise<void> => {
    store = new MemoryLog();
    for (const id of ids) {
      const fields = { name: `agent ${id}`, scopes: ['admin', 'ops'], webhook_url: null };
      await registerAgentCommand(store, id, fields, null, commandContext(`register-${id}`));
    }
  };
  async function* everybody(): AsyncGenerator<string> {
    yield* names;
  }

  const demote = (id: string, now = START, commandId = `demote-${id}`): Promise<unknown> => {
    const context = commandContext(commandId, now);
    return withdrawAdmin({
      store,
      agentId: id,
      others: everybody,
      context,
      act: (revision) => updateAgentCommand(store, id, { scopes: ['ops'] }, context, revision),
    });
  };
  const remove = (id: string): Promise<unknown> => {
    const context = commandContext(`remove-${id}`);
    return withdrawAdmin({
      store,
      agentId: id,
      others: everybody,
      context,
      act: (expectedRevision) =>
        handle({
          store,
          stream: streams.agent(id),
          fold: agentFold,
          decide: removeAgent,
          context,
          expectedRevision,
        }),
    });
  };
  const admins = async (): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const id of names) {
      const { state } = await load(store, streams.agent(id), agentFold);
      if (state.status === 'registered' && state.scopes.includes('admin')) found.push(id);
    }
    return found;
  };
  const conflict = { code: 'STATE_CONFLICT' };
  /** Makes the process die in place of its n-th append from now. */
  const dieAt = (n: number): void => {
    const last = store.asked + n;
    store.onAppend = (_append, asked) => {
      if (asked >= last) throw unavailable();
    };
  };

  it('is refused for the last admin, both by a change and by a removal', async () => {
    await make('a', 'b');
    await demote('b');
    expect(await rejection(demote('a'))).to.include(conflict);
    expect(await rejection(remove('a'))).to.include(conflict);
    expect(await admins()).to.deep.equal(['a']);
  });

  it('announces nothing for an agent without the scope', async () => {
    await make('a', 'b');
    await demote('b');
    await demote('b', START, 'again');
    expect(store.typesOf(streams.admins())).to.deep.equal(['AdminWithdrawn']);
  });

  it('leaves one admin when both of two lose the scope at once', async () => {
    for (const ways of [
      [demote, demote],
      [demote, remove],
      [remove, remove],
    ] as const) {
      await make('a', 'b');
      // Each command has seen the other agent as an admin before either continues.
      let met: () => void = () => {};
      const both = new Promise<void>((resolve) => (met = resolve));
      let waiting = 0;
      store.onAppend = async ({ stream }) => {
        if (stream !== streams.admins()) return;
        waiting += 1;
        if (waiting === 2) met();
        await both;
      };
      const outcomes = await Promise.allSettled([ways[0]('a'), ways[1]('b')]);
      const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
      expect(refused).to.have.lengthOf(1);
      expect(refused[0]).to.include(conflict);
      expect(await admins()).to.have.lengthOf(1);
    }
  });

  it('leaves at least one admin when all of many lose the scope at once', async () => {
    await make(...names);
    await Promise.allSettled(names.map((id) => demote(id)));
    expect(await admins()).to.have.lengthOf.at.least(1);
  });

  describe('by a process that died between the announcement and the change', () => {
    beforeEach(async () => {
      await make('a', 'b');
      dieAt(2);
      await rejection(demote('a'));
      store.onAppend = () => {};
      expect(await admins()).to.deep.equal(['a', 'b']);
    });

    it('is completed by repeating the command', async () => {
      await demote('a', START + 1, 'again');
      expect(await admins()).to.deep.equal(['b']);
    });

    it('does not count the agent as an admin for a minute, and then counts it again', async () => {
      expect(await rejection(demote('b', START + minute - 1))).to.include(conflict);
      await demote('b', START + minute, 'later');
      expect(await admins()).to.deep.equal(['a']);
    });

    it('fails if its process continues after that minute', async () => {
      await make('a', 'b');
      let goOn: () => void = () => {};
      const stopped = new Promise<void>((resolve) => (goOn = resolve));
      let stops: () => void = () => {};
      const atIt = new Promise<void>((resolve) => (stops = resolve));
      store.onAppend = async ({ stream, events }) => {
        if (stream !== streams.agent('a') || events[0]?.metadata.commandId !== 'demote-a') return;
        stops();
        await stopped;
      };
      const slow = rejection(demote('a'));
      await atIt;
      await demote('b', START + minute);
      goOn();
      expect(await slow).to.include(conflict);
      expect(await admins()).to.deep.equal(['a']);
    });
  });

  it('counts an agent again at once when its change was refused', async () => {
    await make('a', 'b');
    const context = commandContext('refused');
    const taken = withdrawAdmin({
      store,
      agentId: 'a',
      others: everybody,
      context,
      act: () => Promise.reject(new RefusalError('STATE_CONFLICT', 'the name is taken')),
    });
    expect(await rejection(taken)).to.include({ message: 'the name is taken' });
    await demote('b');
    expect(await admins()).to.deep.equal(['a']);
  });

  it('gives up when others keep changing the agent, without naming a revision that nobody sent', async () => {
    await make('a', 'b');
    const context = commandContext('overtaken');
    let acted = 0;
    const taken = withdrawAdmin({
      store,
      agentId: 'a',
      others: everybody,
      context,
      act: (revision) => {
        acted += 1;
        return Promise.reject(revisionMismatch('agent-a', revision, revision + 1));
      },
    });
    const refused = await rejection(taken);
    expect(refused).to.include({ code: 'STATE_CONFLICT' });
    expect(refused).to.have.property('details').that.deep.equals({ agent_id: 'a' });
    expect(acted).to.be.greaterThan(1);
  });

  it('checks the revision that the caller saw', async () => {
    await make('a', 'b');
    const context = commandContext('if-match');
    const expectedRevision = 7;
    const others = { store, agentId: 'a', others: everybody, context, expectedRevision };
    const taken = withdrawAdmin({ ...others, act: () => Promise.reject(new Error('not here')) });
    expect(await rejection(taken)).to.include({ code: 'REVISION_MISMATCH' });
  });
});
