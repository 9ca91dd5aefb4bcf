import { expect } from 'chai';
import { EventStream } from '../../support/event-stream.ts';
import { eventually } from '../../support/signals.ts';
import { leaksIn } from './observing.ts';
import { plans } from './planned-attempts.ts';
import type { Pair } from './resident.ts';

interface Channel {
  readonly path: (pair: Pair) => string;
  /** Resumes from the beginning of the log. */
  readonly fromStart?: true;
  /** Does something that the agent itself sees there. @returns a string in the message about it */
  readonly own: (pair: Pair) => Promise<string>;
}

const ownRun = async ({ me }: Pair): Promise<string> =>
  (await me.owner.client.post(`/tasks/${me.things.task}/run_now`)).textAt('details.run_id');

/** Every endless stream, with the filters that name somebody else's things. */
const channels: Readonly<Record<string, readonly Channel[]>> = {
  'GET /runs/live': [
    { path: () => '/runs/live', own: ownRun },
    { path: () => '/runs/live', fromStart: true, own: ownRun },
  ],
  // A task's stream is tried with the task's id.
  'GET /tasks/{id}/live': [],
  'GET /audit/live': [
    { path: () => '/audit/live', own: ownRun },
    { path: () => '/audit/live', fromStart: true, own: ownRun },
  ],
  'GET /ext/events_demo/subscribe/{stream}': [
    {
      path: ({ other }) => `/ext/events_demo/subscribe/${other.things.demoStream}?from=start`,
      own: async ({ me, other }) => {
        const { demoStream } = other.things;
        const published = `of ${me.things.mark}`;
        await me.owner.client.post(`/ext/events_demo/publish/${demoStream}`, published);
        return published;
      },
    },
  ],
  'GET /ext/mcp_http/sse': [
    {
      path: () => '/ext/mcp_http/sse',
      own: async ({ me }) => me.things.workerTool.replace('.', '_'),
    },
  ],
};

/** Tests that endless streams contain nothing of somebody else's, neither past nor present. */
export function itFindsNothingInStreams(pair: () => Pair): void {
  it('knows every endless stream', () => {
    const live = plans.filter(({ isLive }) => isLive).map(({ operation }) => operation);
    expect(Object.keys(channels).sort()).to.deep.equal(live.sort());
  });

  for (const [operation, opened] of Object.entries(channels)) {
    for (const { path, fromStart, own } of opened) {
      const since = fromStart === undefined ? '' : ' from the start of the log';
      it(`receives only its own events from ${operation}${since}`, async () => {
        const { place, me, other } = pair();
        const { token } = me.owner.client;
        const headers: Record<string, string> =
          fromStart === undefined ? {} : { 'last-event-id': place.beginning };
        const sent = path(pair());
        const stream = await EventStream.open(place.address + sent, token, headers);
        try {
          expect(stream.status, stream.text).to.equal(200);
          const { client } = other.owner;
          const { task, demoStream, secret } = other.things;
          const run = await client.post(`/tasks/${task}/run_now?wait=10`);
          await client.post(`/ext/events_demo/publish/${demoStream}`, { secret });
          const shown = await own(pair());
          await eventually(() => stream.text.includes(shown), { what: `${shown} in ${sent}` });
          // The neighbour's own requests are in its audit.
          const { eventTask, eventRun, jobRun } = other.things;
          const never = [secret, eventTask, eventRun, jobRun, run.textAt('details.run_id')];
          expect(leaksIn(stream.text, never)).to.deep.equal([]);
        } finally {
          stream.close();
        }
      });
    }
  }
}
