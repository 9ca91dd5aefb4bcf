import { expect } from 'chai';
import type { JsonObject } from '../../../domain/json.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { CausingService } from '../causation/causing-service.ts';

describe('params in a whole service', () => {
  const directory = useTemporaryDirectory();
  let service: CausingService;
  beforeEach(async () => {
    service = await CausingService.start(directory());
  });
  afterEach(() => service.stop());

  const echo = [{ id: 'say', uses: 'echo', with: { n: '${params.n}' } }];
  const params_schema = {
    type: 'object',
    properties: { n: { type: 'integer' } },
    required: ['n'],
  };
  const counting = async (topic: string): Promise<string> => {
    const id = await service.listen(topic, echo);
    const changed = await service.client.put(`/tasks/${id}`, { params_schema });
    expect(changed.status, changed.text).to.equal(200);
    return id;
  };
  /** The latest run of a task once it has ended. */
  const ended = async (task: string): Promise<JsonObject> => {
    let run: JsonObject = {};
    await eventually(async () => {
      const latest = await service.client.get(`/task/${task}/latest`);
      run = (latest.json ?? {}) as JsonObject;
      return run['success'] === true || run['success'] === false;
    });
    return run;
  };

  it('are passed from one task to another by tasks.run, and checked by the other', async () => {
    const child = await counting('never.published');
    const parent = await service.listen('not.published', [
      { uses: 'tasks.run', with: { task_id: child, params: { n: '${params.n}' } } },
    ]);
    const path = `/tasks/${parent}/run_now?wait=30`;
    const asked = await service.client.post(path, { params: { n: 7 } });
    expect(asked.at('details.run.state'), asked.text).to.equal('succeeded');
    const run = await ended(child);
    expect(run).to.deep.include({ success: true, params: { n: 7 } });
    expect(run['output']).to.deep.include({ steps: { say: { n: 7 } } });
    const refused = await service.client.post(path, { params: { n: 'seven' } });
    expect(refused.at('details.run')).to.deep.include({
      state: 'failed',
      error: 'params.n: must be integer',
    });
  });

  it('that an event task lacks make its run fail, and can be given in a retry', async () => {
    const task = await counting('orders.created');
    await service.publish('orders.created');
    const failed = await ended(task);
    expect(failed).to.deep.include({
      success: false,
      error: 'payload.params.n: is required by params_schema',
      params: {},
    });
    expect(failed['event']).to.include({ topic: 'orders.created' });
    const path = `/runs/${failed['id'] as string}/retry`;
    const without = await service.client.post(path);
    expect(without.at('message')).to.equal('params.n: is required by params_schema');
    const retried = await service.client.post(path, { params: { n: 1 } });
    expect(retried.status, retried.text).to.equal(200);
    await eventually(async () => (await ended(task))['success'] === true);
    expect(await ended(task)).to.deep.include({ params: { n: 1 }, event: failed['event'] });
  });
});
