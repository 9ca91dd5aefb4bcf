import { expect } from 'chai';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { found } from '../../support/signals.ts';
import { useWorkerWorld } from './worker-world.ts';

const properties = { to: { type: 'string' }, subject: { type: 'string' } };
const before = { type: 'object', properties, required: ['to'] };
const after = { type: 'object', properties, required: ['to', 'subject'] };

describe('a tool that is registered with another schema', function () {
  this.timeout(60_000);
  const world = useWorkerWorld();

  const register = async (tool: string, name: string, schema: object): Promise<string> => {
    const tools = [{ name: tool, description: 'sends', schema }];
    const answer = await world().admin.post('/workers', { name, slots: 1, tools });
    return answer.textAt('worker_id');
  };

  const create = (uses: string, args: object): Promise<ReceivedResponse> =>
    world().admin.post('/tasks', {
      title: 'sends',
      description: 'by a worker',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: world().adminId,
      max_retries: 0,
      payload: { pipeline: [{ uses, with: args }] },
    });

  const runNow = async (task: ReceivedResponse): Promise<string> => {
    const asked = await world().admin.post(`/tasks/${task.textAt('id')}/run_now`);
    return asked.textAt('details.run_id');
  };

  /** Why a run waits. Only a worker that asks for jobs, and gets none, reveals that it does not fit. */
  const reasonOf = (run: string, asking: string): Promise<string> =>
    found(async () => {
      const [job] = await jobsOf(asking);
      if (job !== undefined) return `${asking} got the job ${String(job['job_id'])}`;
      const reason = (await world().read(run)).at('waits.0.reason');
      return typeof reason === 'string' && reason.includes('schema') ? reason : undefined;
    });

  const jobsOf = async (worker: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const { json } = await world().admin.post(`/workers/${worker}/jobs?wait=2`);
    return json['jobs'] as readonly Readonly<Record<string, unknown>>[];
  };

  it('does not change the arguments of older tasks, whose runs need a worker with the older schema', async () => {
    const tool = 'mails.send';
    await register(tool, 'one', before);
    const older = await create(tool, { to: '${task.title}' });
    const replaced = await register(tool, 'one', after);
    const run = await runNow(older);
    const reason = `the arguments do not fit the schema of any worker of ${tool}`;
    expect(await reasonOf(run, replaced)).to.equal(reason);
    const [job] = await jobsOf(await register(tool, 'two', before));
    expect(job?.['arguments']).to.deep.equal({ to: 'sends' });
    const body = { lease: job?.['lease'], result: 'sent' };
    await world().admin.post(`/jobs/${String(job?.['job_id'])}/complete`, body);
    expect(await world().result(run)).to.equal('sent');
  });

  it('applies to new tasks, when they are created and when they run', async () => {
    const tool = 'mails.check';
    await register(tool, 'three', before);
    await register(tool, 'three', after);
    const refused = await create(tool, { to: 'me' });
    expect(refused.status, refused.text).to.equal(400);
    const newer = await create(tool, { to: 'me', subject: '${length(task.title)}' });
    expect(newer.status, newer.text).to.equal(201);
    // Registered again, but not changed.
    await register(tool, 'three', after);
    const { state, error } = await world().ended(await runNow(newer));
    expect(state).to.equal('failed');
    expect(error).to.contain(`bad arguments for ${tool}: `);
  });
});
