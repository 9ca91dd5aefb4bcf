import { expect } from 'chai';
import fc from 'fast-check';
import {
  agentFold,
  registerAgent,
  requireAgent,
  updateAgent,
  type AgentState,
} from '../../domain/agents/agent.ts';
import { RefusalError } from '../../domain/errors.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { AgentEvent } from '../../domain/events/catalogue.ts';
import {
  handle,
  load,
  loadLast,
  toNewEvents,
  type Handled,
  type Loaded,
} from '../../domain/handle.ts';
import { commandContext, given, rejection } from './given.ts';
import { answerLost, MemoryLog, unavailable } from './memory-log.ts';

const stream = 'agent-a';
const fields = { name: 'first', scopes: [], webhook_url: null };

function rename(
  store: MemoryLog,
  commandId: string,
  name: string | ((state: AgentState) => string),
  expectedRevision?: number,
): Promise<Handled<AgentState>> {
  return handle({
    store,
    stream,
    fold: agentFold,
    admit: (state) => void requireAgent(state),
    decide: (state) => updateAgent(state, { name: typeof name === 'string' ? name : name(state) }),
    context: commandContext(commandId),
    expectedRevision,
  });
}

const nameOf = ({ state }: Loaded<AgentState>): string => requireAgent(state).name;

describe('handling a command', () => {
  let store: MemoryLog;

  beforeEach(async () => {
    store = new MemoryLog();
    await handle({
      store,
      stream,
      fold: agentFold,
      decide: (state) => registerAgent(state, fields, null),
      context: commandContext('register'),
    });
  });

  /** Lets another writer append just before the n-th append from now. */
  const interfereAt = (...appends: readonly number[]): void => {
    const from = store.asked;
    let busy = false;
    store.onAppend = async (_append, n) => {
      if (busy || !appends.includes(n - from)) return;
      busy = true;
      await rename(store, `other-${n}`, `other-${n}`);
      busy = false;
    };
  };

  it('appends what is decided, and returns the resulting state', async () => {
    const handled = await rename(store, 'c1', 'second');
    expect(nameOf(handled)).to.equal('second');
    expect(handled.revision).to.equal(1);
    const loaded = await load(store, stream, agentFold);
    expect(loaded).to.deep.equal({
      state: handled.state,
      revision: handled.revision,
      position: handled.position,
    });
  });

  it('appends nothing if there is nothing to do', async () => {
    const handled = await rename(store, 'c1', 'first');
    expect(handled.events).to.deep.equal([]);
    expect(store.typesOf(stream)).to.have.lengthOf(1);
  });

  it('does not decide a repeated command again', async () => {
    await rename(store, 'c1', 'second');
    await rename(store, 'c2', 'third');
    const again = await rename(store, 'c1', () => expect.fail('decided again'));
    expect(again.events).to.have.lengthOf(1);
    expect(nameOf(again)).to.equal('third');
    expect(store.typesOf(stream)).to.have.lengthOf(3);
  });

  it('decides again on the new state after a lost race', async () => {
    interfereAt(1);
    const seen: string[] = [];
    await rename(store, 'c1', (state) => {
      seen.push(requireAgent(state).name);
      return 'mine';
    });
    expect(seen).to.deep.equal(['first', 'other-2']);
    expect(nameOf(await load(store, stream, agentFold))).to.equal('mine');
  });

  it('gives up with the conflict when it loses every race', async () => {
    let n = 0;
    store.onAppend = async ({ events }) => {
      if (events[0]?.metadata.commandId !== 'c1') return;
      n += 1;
      await rename(store, `other-${n}`, `other-${n}`);
    };
    const error = (await rejection(rename(store, 'c1', 'mine'))) as EventStoreError;
    expect(error.code).to.equal('CONFLICT');
    expect(n).to.equal(20);
  });

  it('completes all of many concurrent commands on a stream', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `name-${index}`);
    await Promise.all(names.map((name) => rename(store, name, name)));
    expect(store.typesOf(stream)).to.have.lengthOf(41);
  });

  describe('with an expected revision', () => {
    it('is refused if the stream has another revision, before the command is decided', async () => {
      const error = await rejection(rename(store, 'c1', () => expect.fail('decided'), 7));
      expect(error).to.be.instanceOf(RefusalError);
      expect(error).to.include({ code: 'REVISION_MISMATCH' });
      expect((error as RefusalError).details).to.deep.equal({ expected: 7, actual: 0 });
    });

    it('is refused as not found before the revision is checked', async () => {
      const nowhere = handle({
        store,
        stream: 'agent-b',
        fold: agentFold,
        admit: (state) => void requireAgent(state),
        decide: () => [],
        context: commandContext('c1'),
        expectedRevision: 3,
      });
      expect(await rejection(nowhere)).to.include({ code: 'NOT_FOUND' });
    });

    it('is not retried after a lost race', async () => {
      interfereAt(1);
      let decided = 0;
      const renaming = rename(store, 'c1', () => `mine-${(decided += 1)}`, 0);
      expect(await rejection(renaming)).to.include({ code: 'REVISION_MISMATCH' });
      expect(decided).to.equal(1);
    });

    it('succeeds again when it is repeated, even if the stream has moved on', async () => {
      await rename(store, 'c1', 'second', 0);
      const again = await rename(store, 'c1', 'second', 0);
      expect(again.revision).to.equal(1);
      expect(store.typesOf(stream)).to.have.lengthOf(2);
    });
  });

  describe('whose response is lost', () => {
    it('finds its events if they were written', async () => {
      let lost = false;
      store.afterAppend = () => {
        if (lost) return;
        lost = true;
        throw answerLost();
      };
      const handled = await rename(store, 'c1', 'second', 0);
      expect(handled.events).to.have.lengthOf(1);
      expect(store.typesOf(stream)).to.have.lengthOf(2);
    });

    it('appends again if they were not written', async () => {
      let lost = false;
      store.onAppend = () => {
        if (lost) return;
        lost = true;
        throw answerLost();
      };
      const handled = await rename(store, 'c1', 'second', 0);
      expect(nameOf(handled)).to.equal('second');
      expect(store.typesOf(stream)).to.have.lengthOf(2);
    });

    it('searches for its events once, and does not append again, if the log itself has retried for seconds', async () => {
      const before = store.asked;
      store.onAppend = () => {
        throw answerLost(true);
      };
      expect(await rejection(rename(store, 'c1', 'second'))).to.include({
        code: 'OUTCOME_UNKNOWN',
      });
      expect(store.asked).to.equal(before + 1);

      store.onAppend = () => {};
      store.afterAppend = () => {
        throw answerLost(true);
      };
      const handled = await rename(store, 'c2', 'third');
      expect(handled.events).to.have.lengthOf(1);
      expect(store.typesOf(stream)).to.have.lengthOf(2);
      expect(store.asked).to.equal(before + 2);
    });
  });

  for (const [what, fault] of [
    ['has been unavailable for seconds', () => unavailable(true)],
    ['has retried an append for seconds', () => answerLost(true)],
  ] as const) {
    it(`fails all waiting retries together if the log ${what}`, async () => {
      const names = Array.from({ length: 10 }, (_, index) => `name-${index}`);
      let away = 0;
      const from = store.asked;
      store.onAppend = (_append, n) => {
        // Each has tried once, and all but one have lost the race.
        if (n - from <= names.length) return;
        away += 1;
        throw fault();
      };
      const results = await Promise.allSettled(names.map((name) => rename(store, name, name)));
      expect(results.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(1);
      expect(away).to.equal(1);
      store.onAppend = () => {};
      expect(nameOf(await rename(store, 'later', 'later'))).to.equal('later');
    });
  }

  it('lets other waiting commands continue after the log was briefly unavailable for one', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `name-${index}`);
    const from = store.asked;
    store.onAppend = (_append, n) => {
      if (n - from === names.length + 1) throw unavailable();
    };
    const results = await Promise.allSettled(names.map((name) => rename(store, name, name)));
    expect(results.filter(({ status }) => status === 'rejected')).to.have.lengthOf(1);
  });

  it('reports at once that the log is unavailable', async () => {
    const before = store.asked;
    store.onAppend = () => {
      throw unavailable();
    };
    expect(await rejection(rename(store, 'c1', 'second'))).to.include({ code: 'UNAVAILABLE' });
    expect(store.asked).to.equal(before + 1);
  });

  it('writes the context into the metadata, without fields that are not set', () => {
    const [event] = toNewEvents(
      stream,
      [{ type: 'AgentRemoved', data: {} }],
      commandContext('c1', Date.parse('2026-03-02T08:00:00.123Z'), { reason: 'tidy' }),
    );
    expect(event?.metadata).to.deep.equal({
      commandId: 'c1',
      $correlationId: 'correlation',
      actor: 'agent-1',
      source: 'test',
      reason: 'tidy',
      schemaVersion: '1',
      occurredAt: '2026-03-02T08:00:00.123Z',
    });
  });

  it('reads streams of more than a page, and only the last event if that is enough', async () => {
    const context = commandContext('many');
    const many = Array.from({ length: 2_500 }, (_, n): AgentEvent => {
      return { type: 'WebhookSecretRotated', data: { version: n + 1 } };
    });
    await store.append(stream, toNewEvents(stream, many, context), 0);
    const loaded = await load(store, stream, agentFold);
    expect(requireAgent(loaded.state).webhook_secret_version).to.equal(2_500);
    expect(loaded.revision).to.equal(2_500);
    const last = await loadLast(store, stream, {
      initial: 0,
      evolve: (_state: number, event: AgentEvent) =>
        event.type === 'WebhookSecretRotated' ? event.data.version : -1,
    });
    expect(last).to.deep.include({ state: 2_500, revision: 2_500 });
    expect(await loadLast(store, 'agent-none', agentFold)).to.deep.include({ revision: 'none' });
  });

  it('returns the same state as replaying the stream', async () => {
    const change = fc.record({
      name: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
      scopes: fc.option(fc.subarray(['x', 'y']), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 8 }), async (changes) => {
        const log = new MemoryLog();
        let last: Handled<AgentState> = await handle({
          store: log,
          stream,
          fold: agentFold,
          decide: (state) => registerAgent(state, fields, 'hash'),
          context: commandContext('register'),
        });
        for (const [index, { name, scopes }] of changes.entries()) {
          const wanted = { ...(name ? { name } : {}), ...(scopes ? { scopes } : {}) };
          last = await handle({
            store: log,
            stream,
            fold: agentFold,
            decide: (state) => updateAgent(state, wanted),
            context: commandContext(`c${index}`),
          });
        }
        const replayed = await load(log, stream, agentFold);
        expect(last.state).to.deep.equal(replayed.state);
        const events = (log.streams.get(stream) ?? []) as unknown as readonly AgentEvent[];
        expect(given(agentFold, events).status).to.equal('registered');
      }),
      { numRuns: 30 },
    );
  });
});
