import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import { LiveClient } from '../../../api/live/live-client.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import {
  EventStoreError,
  requireReadable,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import { newId } from '../../../domain/ids.ts';
import { request, success } from '../../projections/recorded.ts';
import { EventStream } from '../../support/event-stream.ts';
import { RunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';

describe('live streams of runs with unreadable events in the log', () => {
  let api: RunningApi;
  const opened: EventStream[] = [];
  const run = `run-${newId(0)}`;
  beforeEach(async () => {
    api = await RunningApi.start();
    breakEvent(run, 1);
  });
  afterEach(async () => {
    for (const stream of opened.splice(0)) stream.close();
    await api.close();
  });

  const open = async (after?: string): Promise<EventStream> => {
    const headers = after === undefined ? {} : { 'last-event-id': after };
    const { token } = api.admin.client;
    const stream = await EventStream.open(`${api.url}/runs/live`, token, headers);
    opened.push(stream);
    await stream.named('live.started');
    return stream;
  };

  /** An event that does not fit its schema. */
  const breakEvent = (stream: string, revision: number): void => {
    const { store } = api;
    const broken = (event: RecordedEvent): RecordedEvent =>
      event.stream === stream && event.revision === revision
        ? { ...event, fault: 'broken' }
        : event;
    const readStream = store.readStream.bind(store);
    store.readStream = async (name, part) => {
      const events = (await readStream(name, part)).map(broken);
      return part?.faulty === true ? events : events.map(requireReadable);
    };
    const subscribe = store.subscribe.bind(store);
    store.subscribe = async function* (options) {
      for await (const message of subscribe(options)) {
        yield message.kind === 'events'
          ? { kind: 'events', events: message.events.map(broken) }
          : message;
      }
    };
  };

  const requested = (): DomainEvent => ({ type: 'RunRequested', data: request() });
  const started: DomainEvent = {
    type: 'RunStarted',
    data: { worker: 'w', attempt: 1, leased_until: '2026-03-01T09:00:00.000Z' },
  };

  /** A run with a broken event, and another run. */
  const runs = async (): Promise<void> => {
    await api.append(run, [requested()]);
    await api.append(run, [started]);
    await api.append(run, [{ type: 'RunSucceeded', data: success() }]);
    await api.append(`run-${newId(0)}`, [requested(), started]);
  };
  const reported = ['run.requested', 'run.requested', 'run.started'];

  it('report all other runs', async () => {
    const stream = await open();
    await runs();
    await stream.named('run.started');
    expect(stream.names).to.deep.equal(reported);
  });

  it('resume after the broken event for a client that reconnects', async () => {
    const before = await api.store.head();
    await runs();
    const stream = await open(before);
    await stream.named('run.started');
    expect(stream.names).to.deep.equal(reported);
  });

  it("end with their tokens, even if another client's token cannot be checked", async () => {
    const { live, clock } = api;
    const join = async (stillAdmitted: () => Promise<boolean>): Promise<LiveClient> => {
      const response = new PassThrough().resume() as unknown as ServerResponse;
      const filter = { reach: EVERY_NAMESPACE, own: null, taskId: undefined, state: undefined };
      const after = await live.open();
      const options = { response, filter, after, stillAdmitted, clock, maxPending: 1_000 };
      const client = new LiveClient(options);
      live.join(client);
      return client;
    };
    const broken = await join(() =>
      Promise.reject(new EventStoreError('CORRUPT_EVENT', 'the agent cannot be read')),
    );
    const ended = await join(() => Promise.resolve(false));
    await eventually(() => ended.signal.aborted);
    expect(broken.signal.aborted).to.equal(false);
  });
});
