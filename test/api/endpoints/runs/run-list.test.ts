import { expect } from 'chai';
import { nameBasedId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { request, stepEnd } from '../../../projections/recorded.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { FailedRuns } from './failed-runs.ts';

interface Listed {
  readonly items: readonly {
    readonly id: string;
    readonly output: unknown;
    readonly parent_run_id: string | null;
  }[];
  readonly total: number;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

describe('a list of runs', () => {
  const api = useRunningApi();
  const runsOf = async (task: string, query = ''): Promise<Listed> =>
    (await api().admin.client.get(`/runs?task_id=${task}${query}`)).json as unknown as Listed;

  it('shows only part of a large output; a single run shows it all', async () => {
    const runs = new FailedRuns(api(), api().admin);
    const task = await runs.makeTask();
    const run = await runs.runNow(task);
    const large = { text: 'x'.repeat(100_000) };
    await runs.failWith(task, run, [stepEnd('a', { result: large }), stepEnd('b', { result: 7 })]);
    const [listed] = (await runsOf(task)).items;
    expect(JSON.stringify(listed).length).to.be.below(66_000);
    const { json } = await api().admin.client.get(`/runs/${run}`);
    const { summary, ...whole } = json['output'] as {
      steps: object;
      summary: object;
    };
    expect(whole).to.deep.equal({ steps: { a: large, b: 7 } });
    const cut = listed?.output as { steps: { a: object; b: unknown } };
    expect(cut).to.deep.include({ summary, truncated: true });
    expect(cut.steps.b).to.equal(7);
    expect(cut.steps.a).to.deep.include({ truncated: true, size_bytes: 100_011 });
  });

  it('names the run that waits for the end of a run, like a single run does', async () => {
    const runs = new FailedRuns(api(), api().admin);
    const task = await runs.makeTask();
    const parent = await runs.runNow(task);
    const child = nameBasedId('test', 'child');
    const of = { task_id: task, created_by: api().admin.id };
    const data = request({ ...of, parent: { run_id: parent, step: 'call' } });
    await api().append(streams.run(child), [{ type: 'RunRequested', data }]);
    const { items } = await runsOf(task);
    const parents = new Map(items.map(({ id, parent_run_id }) => [id, parent_run_id]));
    expect(Object.fromEntries(parents)).to.deep.equal({ [child]: parent, [parent]: null });
    const { json } = await api().admin.client.get(`/runs/${child}`);
    expect(json['parent_run_id']).to.equal(parent);
  });

  it('shows only the child runs of the run that `parent_run_id` names', async () => {
    const runs = new FailedRuns(api(), api().admin);
    const task = await runs.makeTask();
    const [parent, other] = [await runs.runNow(task), await runs.runNow(task)];
    const children = [nameBasedId('test', 'one'), nameBasedId('test', 'two')];
    const of = { task_id: task, created_by: api().admin.id };
    for (const child of children) {
      const data = request({ ...of, parent: { run_id: parent, step: 'call' } });
      await api().append(streams.run(child), [{ type: 'RunRequested', data }]);
    }
    const childrenOf = async (id: string, query = ''): Promise<Listed> => {
      const { json } = await api().admin.client.get(`/runs?parent_run_id=${id}${query}`);
      return json as unknown as Listed;
    };
    const found = await childrenOf(parent.toUpperCase(), '&limit=1');
    expect(found).to.deep.include({ total: 2, has_more: true });
    const rest = await childrenOf(parent, `&limit=1&cursor=${found.next_cursor ?? ''}`);
    const ids = [...found.items, ...rest.items].map(({ id }) => id);
    expect(ids).to.have.members(children);
    expect((await childrenOf(parent, '&state=failed')).total).to.equal(0);
    expect((await childrenOf(parent, `&task_id=${task}&state=queued`)).total).to.equal(2);
    expect((await childrenOf(other)).items).to.deep.equal([]);
  });

  it('returns the same page by cursor as by offset', async () => {
    const runs = new FailedRuns(api(), api().admin);
    const task = await runs.makeTask();
    const made: string[] = [];
    const total = 105;
    for (let count = 0; count < total; count += 1) made.unshift(await runs.runNow(task));
    for (const limit of [49, 50, 51, 52, 101, 102, 103, 200]) {
      for (const offset of [0, 1, 2, 54, 104, 105, 110]) {
        const page = await runsOf(task, `&limit=${limit}&offset=${offset}`);
        const place = `limit ${limit}, offset ${offset}`;
        const expected = made.slice(offset, offset + limit);
        expect(
          page.items.map(({ id }) => id),
          place,
        ).to.deep.equal(expected);
        expect(page.has_more, place).to.equal(offset + limit < total);
        expect(page.total, place).to.equal(total);
        if (page.next_cursor === null) continue;
        const next = await runsOf(task, `&limit=${limit}&cursor=${page.next_cursor}`);
        const rest = made.slice(offset + limit, offset + 2 * limit);
        expect(
          next.items.map(({ id }) => id),
          place,
        ).to.deep.equal(rest);
      }
    }
  });
});
