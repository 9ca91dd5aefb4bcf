import { expect } from 'chai';
import { EventStoreError } from '../../../domain/event-store.ts';
import { EventStream } from '../../support/event-stream.ts';
import { RunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';
import { request } from '../../projections/recorded.ts';

describe('a live stream that cannot read the log', () => {
  let api: RunningApi;
  const opened: EventStream[] = [];
  beforeEach(async () => {
    api = await RunningApi.start();
  });
  afterEach(async () => {
    for (const stream of opened.splice(0)) stream.close();
    await api.close();
  });

  /** Messages of the log about a failure, without those of level debug. */
  const reported = (failure: string): readonly string[] =>
    api.logged
      .map((line) => JSON.parse(line) as { readonly level: string; readonly message: string })
      .filter(({ level, message }) => level !== 'debug' && message.includes(failure))
      .map(({ message }) => message);

  for (const [path, failure] of [
    ['/runs/live', 'live stream could not be replayed from the log'],
    ['/audit/live', 'live audit could not follow the log'],
  ] as const) {
    it(`ends, and is reported until a client can follow again: ${path}`, async () => {
      const after = await api.store.head();
      await api.append('run-1', [{ type: 'RunRequested', data: request() }]);
      const { store } = api;
      const subscribe = store.subscribe.bind(store);
      let fails = true;
      store.subscribe = (options) => {
        if (fails && options.after === after) throw new EventStoreError('CORRUPT_EVENT', 'broken');
        return subscribe(options);
      };
      const open = async (): Promise<EventStream> => {
        const { token } = api.admin.client;
        const stream = await EventStream.open(api.url + path, token, { 'last-event-id': after });
        opened.push(stream);
        return stream;
      };
      const broken = await open();
      await eventually(() => broken.ended);
      expect(reported(failure)).to.deep.equal([failure]);
      fails = false;
      const stream = await open();
      const over = `succeeded again after: ${failure}`;
      await eventually(() => reported(failure).includes(over));
      expect(reported(failure)).to.deep.equal([failure, over]);
      expect(stream.ended).to.equal(false);
    });
  }
});
