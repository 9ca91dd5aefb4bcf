import { expect } from 'chai';
import type { EventPage } from '../../../../api/client/client.ts';
import { triggeredRunId } from '../../../../domain/ids.ts';
import type { ApiClient } from '../../../support/api-client.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { found } from '../../../support/signals.ts';
import { openStandIns } from '../../../support/stand-in-stores.ts';
import { agentIn } from '../../namespaces/agent-in.ts';
import { plainTask } from '../../plain-task.ts';

for (const [where, stores] of [
  ['the embedded stores', undefined],
  ['servers', openStandIns],
] as const) {
  describe(`the list of events, over ${where},`, () => {
    const api = useRunningApi({}, stores);

    /** Publishes an event. A slow machine may get 503 first, until the index of topics has caught up. */
    const publish = async (
      topic: string,
      payload: object = {},
      { client, id }: SignedIn = api().admin,
    ): Promise<string> => {
      const answer = await found(async () => {
        const one = await client.post('/events', { topic, payload, source_agent_id: id });
        return one.status === 503 ? null : one;
      });
      expect(answer.status, answer.text).to.equal(202);
      return answer.textAt('details.event_id');
    };
    const read = async (query: string, client: ApiClient = api().admin.client) => {
      const answer = await client.get(`/events?${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return answer.json as unknown as EventPage;
    };
    const listening = async (topic: string): Promise<string> => {
      const { client, id } = api().admin;
      const event = { schedule_kind: 'event', schedule_expr: topic };
      return (await client.post('/tasks', { ...plainTask(id), ...event })).textAt('id');
    };

    it('names the runs that an event causes', async () => {
      const { admin } = api();
      const tasks = [await listening('parcel.*'), await listening('parcel.sent')].sort();
      const event = await publish('parcel.sent', { weight: 3 });
      const { items, next_cursor } = await read('topic=parcel.sent');
      expect(next_cursor).to.equal(null);
      expect(items).to.have.length(1);
      expect(items[0]).to.deep.include({
        event_id: event,
        topic: 'parcel.sent',
        payload: { weight: 3 },
        source_agent_id: admin.id,
        triggered: 2,
      });
      expect(items[0]).not.to.have.property('namespace');
      const runs = items[0]?.runs ?? [];
      expect(runs.map(({ task_id }) => task_id).sort()).to.deep.equal(tasks);
      for (const { run_id, task_id } of runs) {
        expect(run_id).to.equal(triggeredRunId(task_id, event));
      }
    });

    it('is read page by page, newest first, even if events are published in the meantime', async () => {
      const first = await publish('paged');
      const second = await publish('paged');
      const page = await read('topic=paged&limit=1');
      expect(page.items.map(({ event_id }) => event_id)).to.deep.equal([second]);
      await publish('paged');
      const rest = await read(`topic=paged&limit=1&cursor=${page.next_cursor ?? ''}`);
      expect(rest.items.map(({ event_id }) => event_id)).to.deep.equal([first]);
      expect(rest.next_cursor).to.equal(null);
    });

    it("has only events within the caller's reach, and names their namespaces", async () => {
      const { admin } = api();
      expect((await admin.client.post('/namespaces', { name: 'depot' })).status).to.equal(201);
      const there = await agentIn(api(), 'depot', ['events:publish', 'events:read']);
      const here = await api().signIn(['events:read']);
      const published = await publish('shared', {}, there);
      const { items } = await read('topic=shared', there.client);
      expect(items).to.have.length(1);
      expect(items[0]).to.include({ namespace: 'depot' });
      expect((await read('topic=shared', here.client)).items).to.deep.equal([]);
      expect((await read('topic=shared')).items).to.have.length(1);
      expect((await read('topic=shared&namespace=default')).items).to.deep.equal([]);
      expect((await here.client.get('/events?namespace=depot')).status).to.equal(404);
      const one = `/events/${published}`;
      expect((await there.client.get(one)).at('namespace')).to.equal('depot');
      expect((await admin.client.get(one)).status).to.equal(200);
      expect((await here.client.get(one)).status).to.equal(404);
    });

    it('shows one event by its id, whatever its topic and size', async () => {
      const { client } = api().admin;
      const task = await listening('one.*');
      const large = { text: 'x'.repeat(70_000) };
      const event = await publish('one.large', large);
      for (let n = 0; n < 3; n += 1) await publish('one.other');
      const shown = await client.get(`/events/${event.toUpperCase()}`);
      expect(shown.status, shown.text).to.equal(200);
      const { payload, ...rest } = shown.json;
      expect(payload).to.deep.equal(large);
      const { payload: cut, ...listed } = (await read('topic=one.large')).items[0] ?? {};
      expect(cut).to.include({ truncated: true });
      expect(rest).to.deep.equal(listed);
      expect(shown.at('runs.0.run_id')).to.equal(triggeredRunId(task, event));
    });

    it('says which patterns a topic matches', async () => {
      const { client } = api().admin;
      const task = await listening('ship.*.left');
      await listening('ship.*.arrived');
      const matching = async (topic: string) =>
        (await client.get(`/topics?matching=${topic}`)).at('topics');
      expect(await matching('ship.titanic.left')).to.deep.equal([
        { topic: 'ship.*.left', active_tasks: 1, task_ids: [task] },
      ]);
      expect(await matching('ship.left')).to.deep.equal([]);
    });
  });
}
