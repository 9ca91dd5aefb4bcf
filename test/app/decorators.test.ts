import { expect } from 'chai';
import { watchAppends } from '../../app/watching/append-watch.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import { tracedEventStore } from '../../observability/traced-event-store.ts';
import type { Traces } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { logUpTo } from '../../projections/generations/bounded-log.ts';
import { readModelOfReplay, replayable } from '../../projections/replays/replay-views.ts';

/** The arguments of each method of the log; a new method of the port must be added here. */
const calls: { readonly [K in keyof Required<EventStore>]: Parameters<Required<EventStore>[K]> } = {
  append: ['run-1', [], 'none'],
  appendInOrder: [[]],
  prepare: [[]],
  rehearse: [[]],
  readStream: ['run-1', { limit: 3 }],
  readAll: ['05', 4],
  readAllBackwards: ['06', 5],
  subscribe: [{ after: BEGINNING, prefixes: ['run-'], signal: new AbortController().signal }],
  listStreams: [{ prefix: 'run-', limit: 6 }],
  truncate: ['run-1', 7],
  isPosition: ['05'],
  head: [],
  reaches: ['08'],
  hasHad: [{ stream: 'run-1', revision: 9, id: 'event-1', createdAt: '2026-01-01T00:00:00.000Z' }],
  ping: [],
  close: [],
};

const projection = replayable[0];
if (projection === undefined) throw new Error('no view can be built as of a time');

/** The arguments of each method of the read model. */
const reads: { readonly [K in keyof Required<ReadModel>]: readonly unknown[] } = {
  get: [projection, 'a'],
  find: [projection, { filters: [], sort: [], limit: 1 }],
  count: [projection, []],
  values: [projection, { filters: [], fields: [] }],
  list: [projection, { filters: [], sort: [], limit: 1 }],
  checkpoint: [projection],
  landmark: [projection],
  version: [projection],
  openWriter: [projection, { generation: 1, bulk: false, fence: 2 }],
  liveGeneration: [projection],
  switchTo: [projection, 3],
  withdraw: [projection],
  schemas: [projection],
  generations: [projection],
  discard: [projection, 4],
  requireRights: [],
  ping: [],
  close: [],
};

/**
 * The compared options of a subscription; a decorator that can end it earlier adds its own signal
 * and listener.
 */
const withoutSignal = (given: unknown): unknown => {
  if (typeof given !== 'object' || given === null || !('signal' in given)) return given;
  const { after, prefixes } = given as Parameters<EventStore['subscribe']>[0];
  return { after, prefixes };
};

type Call = (...given: readonly unknown[]) => unknown;

/** A port whose methods record their arguments and return their names. */
class Noting {
  readonly noted: (readonly [method: string, given: readonly unknown[]])[] = [];

  constructor(methods: readonly string[]) {
    for (const method of methods) {
      Object.defineProperty(this, method, {
        value: (...given: readonly unknown[]) => {
          this.noted.push([method, given]);
          return method === 'subscribe' ? subscription() : Promise.resolve(method);
        },
      });
    }
  }
}

async function* subscription(): AsyncGenerator<{ kind: 'caught-up'; position: string }> {
  yield { kind: 'caught-up', position: '09' };
}

/** Calls a method of a port; for a subscription, reads its first message. */
async function answerOf(port: object, method: string, given: readonly unknown[]): Promise<unknown> {
  const answer = (Reflect.get(port, method) as Call)(...given);
  if (method !== 'subscribe') return answer;
  for await (const message of answer as AsyncIterable<unknown>) return message;
  return undefined;
}

const traces = { begin: () => ({ fail() {}, end() {} }) } as unknown as Traces;

const decorators: Readonly<Record<string, (store: EventStore) => EventStore>> = {
  'the watch over appends': (store) => watchAppends(store).store,
  'the log whose appends are spans': (store) => tracedEventStore(store, traces),
  'the log that ends at a position': (store) => logUpTo(store, '09'),
};

for (const [name, decorate] of Object.entries(decorators)) {
  describe(name, () => {
    for (const [method, given] of Object.entries(calls)) {
      it(`passes on ${method}`, async () => {
        const behind = new Noting(Object.keys(calls));
        const answer = await answerOf(decorate(behind as unknown as EventStore), method, given);
        expect(behind.noted.map(([called]) => called)).to.deep.equal([method]);
        expect(behind.noted[0]?.[1].map(withoutSignal)).to.deep.equal(given.map(withoutSignal));
        const said = { kind: 'caught-up', position: '09' };
        expect(answer).to.deep.equal(method === 'subscribe' ? said : method);
      });
    }

    it('has no method that the log lacks', () => {
      const behind = new Noting(['append', 'appendInOrder', 'subscribe']);
      expect(decorate(behind as unknown as EventStore).prepare).to.equal(undefined);
    });
  });
}

describe('the read model of a replay', () => {
  for (const [method, given] of Object.entries(reads)) {
    it(`passes on ${method}`, async () => {
      const behind = new Noting(Object.keys(reads));
      const readModel = readModelOfReplay(behind as unknown as ReadModel, 'then');
      expect(await answerOf(readModel, method, given)).to.equal(method);
      const [noted] = behind.noted;
      expect([noted?.[0], noted?.[1].slice(1)]).to.deep.equal([method, given.slice(1)]);
      const asked = noted?.[1][0] as { readonly name: string } | undefined;
      const isRead = ['get', 'find', 'count', 'values', 'list'].includes(method);
      const named = isRead ? '_replay_then' : '';
      if (asked !== undefined) expect(asked.name).to.equal(`${projection.name}${named}`);
    });
  }
});
