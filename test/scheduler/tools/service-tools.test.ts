import { expect } from 'chai';
import { RefusalError } from '../../../domain/errors.ts';
import { serviceTools, type ServiceActions } from '../../../scheduler/tools/service-tools.ts';
import { execute, type Went } from '../pipeline/pipeline-execution-harness.ts';

interface Asked {
  readonly topic?: string;
  readonly payload?: unknown;
  readonly task_id?: string;
  readonly params?: unknown;
  readonly actor: string;
  readonly commandId: string;
  readonly causation: object;
}

async function run(
  step: object,
  answer: (request: Asked) => unknown,
): Promise<{ readonly went: Went; readonly asked: readonly Asked[] }> {
  const asked: Asked[] = [];
  const act = async (request: Asked): Promise<never> => {
    asked.push(request);
    await Promise.resolve();
    return answer(request) as never;
  };
  const actions: ServiceActions = { publishEvent: act, runTask: act };
  const tools = Object.fromEntries(serviceTools(actions).map((tool) => [tool.name, tool]));
  const went = await execute({
    pipeline: [step],
    params: { id: 'task-9', key: 'hush' },
    secrets: { KEY: 'hush' },
    tools,
  });
  return { went, asked };
}

describe('the tool events.publish', () => {
  const step = { uses: 'events.publish', with: { topic: 'a.b', payload: { id: '${params.id}' } } };

  it("publishes as the task's owner, with a command id of the run and step", async () => {
    const { went, asked } = await run(step, () => ({
      event_id: 'e1',
      stream_id: '1-0',
      triggered_tasks: ['t2'],
      success: true,
    }));
    expect(asked).to.have.lengthOf(1);
    expect(asked[0]).to.deep.include({
      topic: 'a.b',
      payload: { id: 'task-9' },
      actor: 'agent-1',
      commandId: 'run-1:step_0',
      causation: { runId: 'run-1', taskId: 'task-1', step: 'step_0' },
    });
    expect(went.output['steps']).to.deep.equal({
      step_0: { event_id: 'e1', stream_id: '1-0', triggered_tasks: ['t2'] },
    });
  });

  it('never publishes a secret', async () => {
    const secret = {
      uses: 'events.publish',
      with: { topic: 'a', payload: { k: '${params.key}' } },
    };
    const { asked } = await run(secret, () => ({}));
    expect(asked[0]?.payload).to.deep.equal({ k: '***' });
  });

  it('is not retried after a refusal', async () => {
    const { went } = await run(step, () => {
      throw new RefusalError('FORBIDDEN', 'events:publish is missing');
    });
    expect(went.result).to.include({
      kind: 'failed',
      retryable: false,
      error: 'events:publish is missing',
    });
  });

  it('may be retried when the store is unavailable', async () => {
    const { went } = await run(step, () => {
      throw new Error('unavailable');
    });
    expect(went.result).to.include({ kind: 'failed', retryable: true });
  });

  it('rejects invalid topics and payloads', async () => {
    for (const args of [
      { topic: 'a b', payload: {} },
      { topic: 'a', payload: [] },
      { topic: 'a' },
    ]) {
      const { went, asked } = await run({ uses: 'events.publish', with: args }, () => ({}));
      expect(went.result).to.include({ kind: 'failed', retryable: false });
      expect(asked).to.deep.equal([]);
    }
  });
});

describe('the tool tasks.run', () => {
  it("runs the task as this task's owner", async () => {
    const step = { uses: 'tasks.run', with: { task_id: '${params.id}' } };
    const { went, asked } = await run(step, () => ({ run_id: 'r2', more: 1 }));
    expect(asked[0]).to.include({
      task_id: 'task-9',
      actor: 'agent-1',
      commandId: 'run-1:step_0',
    });
    expect(went.output['steps']).to.deep.equal({ step_0: { run_id: 'r2' } });
  });

  it('gives it params', async () => {
    const params = { limit: 5, from: '${params.id}' };
    const step = { uses: 'tasks.run', with: { task_id: 'task-9', params } };
    const { asked } = await run(step, () => ({ run_id: 'r2' }));
    expect(asked[0]?.params).to.deep.equal({ limit: 5, from: 'task-9' });
    const waiting = { uses: 'tasks.run', with: { task_id: 'task-9', params, wait: true } };
    const { asked: waited } = await run(waiting, () => ({ run_id: 'r2' }));
    expect(waited[0]?.params).to.deep.equal({ limit: 5, from: 'task-9' });
  });

  it('fails permanently if that task does not accept them', async () => {
    const step = { uses: 'tasks.run', with: { task_id: 'task-9' }, max_retries: 3 };
    const { went, asked } = await run(step, () => {
      throw new RefusalError('INVALID', 'params.limit: is required by params_schema');
    });
    expect(asked).to.have.lengthOf(1);
    expect(went.result).to.include({ kind: 'failed', retryable: false });
    expect(went.ends[0]?.error).to.contain('params.limit: is required by params_schema');
  });
});
