import { expect } from 'chai';
import { newId, timeBasedId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { request } from '../../../projections/recorded.ts';
import type { OpenStores } from '../../../support/api-stores.ts';
import { pipelineSecrets, useRunningApi } from '../../../support/running-api.ts';
import { openStandIns } from '../../../support/stand-in-stores.ts';
import { FailedRuns } from './failed-runs.ts';

interface Found {
  readonly items: readonly { readonly id: string }[];
  readonly total: number | null;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

function describeSearch(title: string, openStores?: OpenStores): void {
  describe(`a search for runs ${title}`, () => {
    const api = useRunningApi({}, openStores);
    const found = async (query: string): Promise<Found> => {
      const { client } = api().admin;
      await client.get(`/runs?limit=1&after=${await api().store.head()}`);
      const answer = await client.get(`/runs?${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return answer.json as unknown as Found;
    };
    const idsOf = ({ items }: Found): readonly string[] => items.map(({ id }) => id);
    /** Ids of this process may be ahead of time, because earlier tests set their clocks ahead. */
    const eventId = (n: number): string => {
      const time = api().clock.now().toString(16).padStart(12, '0');
      return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-00000000000${n}`;
    };
    const runs = (): FailedRuns => new FailedRuns(api(), api().admin);

    it('finds a run by the start of its id, ignoring case', async () => {
      const task = await runs().makeTask();
      const wanted = await runs().failed(task);
      const other = await runs().failed(task);
      const page = await found(`id=${wanted.slice(0, 8).toUpperCase()}`);
      expect(idsOf(page)).to.deep.equal([wanted]);
      expect(page).to.deep.include({ total: null, has_more: false, next_cursor: null });
      expect(idsOf(await found(`id=${wanted}`))).to.deep.equal([wanted]);
      expect(idsOf(await found(`id=${wanted}&state=queued`))).to.deep.equal([]);
      expect(idsOf(await found(`id=${other}&task_id=${task}&state=failed`))).to.deep.equal([other]);
    });

    it('continues after the last id of a page', async () => {
      const at = api().clock.now();
      const same = Array.from({ length: 5 }, (_, n) => timeBasedId(at, 'search', String(n)));
      const data = request({ task_id: newId(at), created_by: api().admin.id });
      for (const id of same) {
        await api().append(streams.run(id), [{ type: 'RunRequested', data }]);
      }
      const first = await found(`id=${same[0]?.slice(0, 13)}&limit=3`);
      expect(idsOf(first)).to.deep.equal(same.toSorted().slice(0, 3));
      const rest = await found(`id=${same[0]?.slice(0, 13)}&cursor=${first.next_cursor}`);
      expect(idsOf(rest)).to.deep.equal(same.toSorted().slice(3));
    });

    it('finds failed runs by a part of their error, newest first', async () => {
      const task = await runs().makeTask();
      const first = await runs().failed(task, 'connect ECONNREFUSED 10.9.8.7');
      await runs().failed(task, 'no such table');
      const last = await runs().failed(task, 'again: econnrefused 10.9.8.7');
      const page = await found('error=econnrefused%2010.9.8.7');
      expect(idsOf(page)).to.deep.equal([last, first]);
      const one = await found('error=ECONNREFUSED%2010.9.8.7&limit=1');
      expect(idsOf(one)).to.deep.equal([last]);
      const rest = await found(`error=ECONNREFUSED%2010.9.8.7&cursor=${one.next_cursor}`);
      expect(idsOf(rest)).to.deep.equal([first]);
      expect(idsOf(await found('error=econnrefused&state=queued'))).to.deep.equal([]);
    });

    it('finds runs by their params and by their event', async () => {
      const task = await runs().makeTask();
      const run_now = { params: { customer: 'Näslund & Söner' } };
      const { client, id: created_by } = api().admin;
      const asked = await client.post(`/tasks/${task}/run_now`, run_now);
      const given = asked.textAt('details.run_id');
      expect(idsOf(await found('input=n%C3%A4slund%20%26'))).to.deep.equal([given]);
      const event = {
        id: eventId(1),
        topic: 'orders.paid',
        payload: { order: 'zx-81' },
        source_agent_id: created_by,
        published_at: '2026-03-01T08:59:59.000Z',
      };
      const triggered = newId(api().clock.now());
      const data = request({ task_id: task, created_by, trigger: 'event', event });
      await api().append(streams.run(triggered), [{ type: 'RunRequested', data }]);
      expect(idsOf(await found('input=ZX-81'))).to.deep.equal([triggered]);
      expect(idsOf(await found(`event_id=${event.id.toUpperCase()}`))).to.deep.equal([triggered]);
      expect(idsOf(await found(`event_id=${eventId(2)}`))).to.deep.equal([]);
    });

    it('never reveals the value of a secret', async () => {
      const secret = pipelineSecrets['TOKEN'] ?? '';
      const { client, id } = api().admin;
      const pipeline = [
        { uses: 'http.request', with: { url: 'http://x.example/${secrets.TOKEN}' } },
      ];
      const task = await runs().makeTask({ payload: { pipeline }, created_by: id });
      const asked = await client.post(`/tasks/${task}/run_now`, { params: { echo: secret } });
      expect(asked.status, asked.text).to.be.oneOf([200, 202]);
      const run = asked.textAt('details.run_id');
      expect(idsOf(await found(`input=echo&task_id=${task}`))).to.deep.equal([run]);
      expect(idsOf(await found(`input=${secret.slice(0, 5)}&task_id=${task}`))).to.deep.equal([]);
    });

    it('examines at most a few thousand runs for a page', async () => {
      const task = await runs().makeTask();
      const { id: created_by } = api().admin;
      const many = Array.from({ length: 300 }, () => newId(api().clock.now()));
      for (const id of many) {
        const data = request({ task_id: task, created_by, params: { n: id } });
        await api().append(streams.run(id), [{ type: 'RunRequested', data }]);
      }
      // The first match is on the second page that is read. A slow machine may run out of time before it.
      const query = `input=${many[0]}&task_id=${task}`;
      let page = await found(query);
      while (page.items.length === 0 && page.has_more) {
        page = await found(`${query}&cursor=${page.next_cursor}`);
      }
      expect(idsOf(page)).to.deep.equal([many[0]]);
      // The time is up after the first page that is read.
      const { clock } = api();
      const steady = clock.steady.bind(clock);
      let calls = 0;
      clock.steady = () => steady() + 1000 * (calls += 1);
      try {
        const cut = await found(query);
        expect(cut).to.deep.include({ items: [], total: null, has_more: true });
        const rest = await found(`${query}&cursor=${cut.next_cursor}`);
        expect(idsOf(rest)).to.deep.equal([many[0]]);
      } finally {
        clock.steady = steady;
      }
    });

    it('finds nothing of another namespace', async () => {
      const task = await runs().makeTask();
      const run = await runs().failed(task, 'only here');
      const made = await api().admin.client.post('/namespaces', {
        name: `apart-${newId(0).slice(-6)}`,
      });
      expect(made.status, made.text).to.equal(201);
      const apart = `namespace=${made.textAt('name')}`;
      expect(idsOf(await found(`id=${run}&${apart}`))).to.deep.equal([]);
      expect(idsOf(await found(`error=only%20here&${apart}`))).to.deep.equal([]);
      expect(idsOf(await found(`id=${run}&namespace=default`))).to.deep.equal([run]);
    });
  });
}

describeSearch('over the embedded stores');
describeSearch('over servers', openStandIns);
