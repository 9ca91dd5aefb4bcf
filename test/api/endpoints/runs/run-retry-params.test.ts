import { expect } from 'chai';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { FailedRuns } from './failed-runs.ts';

const params_schema = { type: 'object', properties: { limit: { type: 'integer' } } };
const pipeline = ['a', 'b', 'c'].map((id) => ({ id, uses: 'echo' }));

describe('the params of a retried run', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  let runs: FailedRuns;
  let task: string;
  let run: string;
  beforeEach(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read']);
    runs = new FailedRuns(api(), caller);
    const payload = { params: { limit: 1, shop: 'a' }, pipeline };
    task = await runs.makeTask({ payload, params_schema });
    const params = { limit: 2, shop: 'b' };
    const asked = await caller.client.post(`/tasks/${task}/run_now`, { params });
    run = asked.textAt('details.run_id');
    await runs.failWith(task, run, []);
  });

  const retry = (query = '', body?: object) =>
    caller.client.post(`/runs/${run}/retry${query}`, body);
  const paramsOf = async (answer: Awaited<ReturnType<typeof retry>>): Promise<unknown> => {
    expect(answer.status, answer.text).to.equal(200);
    return (await caller.client.get(`/runs/${answer.textAt('details.run_id')}`)).at('params');
  };

  it('are those of the failed run', async () => {
    expect(await paramsOf(await retry())).to.deep.equal({ limit: 2, shop: 'b' });
  });

  it('are replaced key by key', async () => {
    const answer = await retry('', { params: { limit: 3 } });
    expect(await paramsOf(answer)).to.deep.equal({ limit: 3, shop: 'b' });
    const request = await runs.requestOf(answer.textAt('details.run_id'));
    expect(request.params).to.deep.equal({ limit: 3, shop: 'b' });
  });

  it('are checked by the task that the retry executes', async () => {
    const refused = await retry('', { params: { limit: 'x' } });
    expect(refused.status).to.equal(400);
    expect(refused.at('message')).to.equal('params.limit: must be integer');
    const stricter = { ...params_schema, properties: { limit: { type: 'integer', maximum: 1 } } };
    await caller.client.put(`/tasks/${task}`, { params_schema: stricter });
    expect(await paramsOf(await retry())).to.deep.equal({ limit: 2, shop: 'b' });
    const anew = await retry('?from=start');
    expect(anew.at('message')).to.equal('params.limit: must be at most 1');
    expect(await paramsOf(await retry('?from=start', { params: { limit: 0 } }))).to.deep.equal({
      limit: 0,
      shop: 'b',
    });
  });

  it('are kept by a redrive, which leaves out runs whose params the task does not accept', async () => {
    const redrive = async (from: string) => {
      const answer = await caller.client.post('/runs/redrive', { task_id: task, from });
      expect(answer.status, answer.text).to.equal(200);
      return answer.at('details') as {
        readonly count: number;
        readonly passed_over: Readonly<Record<string, number>>;
        readonly runs: readonly { readonly run_id: string }[];
      };
    };
    const closed = { type: 'object', properties: { limit: {} }, additionalProperties: false };
    const payload = { params: {}, pipeline };
    await caller.client.put(`/tasks/${task}`, { params_schema: closed, payload });
    const none = await redrive('start');
    expect(none.count).to.equal(0);
    expect(none.passed_over['invalid_params']).to.equal(1);
    const { runs: retried } = await redrive('failed_step');
    const request = await runs.requestOf(retried[0]?.run_id ?? '');
    expect(request.params).to.deep.equal({ limit: 2, shop: 'b' });
  });
});
