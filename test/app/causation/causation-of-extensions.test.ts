import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { CausingService, cutAt } from './causing-service.ts';

const LIMIT = 3;

const manifest = {
  id: 'looping',
  name: 'Looping',
  version: '1.0.0',
  module: 'looping.mjs',
  capabilities: ['TOOLS', 'EVENTS_PUB', 'EVENTS_SUB'],
};

/**
 * An extension whose tools act in every way that extensions can, and whose subscriber responds to each event with the
 * same event.
 */
const module = `
const object = { type: 'object' };
export async function setup({ toolRegistry, events, core }) {
  toolRegistry.registerTool('publish', ({ topic }) => events.publish(topic, {}), object);
  toolRegistry.registerTool('run', ({ task_id }, { actAs }) =>
    toolRegistry.getTool('tasks.run').call({ task_id }, { actAs }), object);
  toolRegistry.registerTool('ask', async ({ task_id, token }) => {
    const { status, body } = await core.request('POST', '/tasks/' + task_id + '/run_now', { token });
    if (status !== 200) throw Object.assign(new Error(body.message), { retryable: false });
    return body;
  }, object);
  toolRegistry.registerTool('leave', ({ topic }) => {
    setTimeout(() => void events.publish(topic, {}), 2_000);
  }, object);
  await events.subscribe('echo', () => events.publish('echo', {}));
}`;

describe('a chain of runs through an extension', () => {
  const directory = useTemporaryDirectory();
  let service: CausingService;
  beforeEach(async () => {
    const folder = join(directory(), 'looping');
    await mkdir(folder);
    await writeFile(join(folder, 'extension.json'), JSON.stringify(manifest));
    await writeFile(join(folder, 'looping.mjs'), module);
    service = await CausingService.start(join(directory(), 'data'), {
      SVC_EXT_PATHS: folder,
      SVC_MAX_CAUSATION_DEPTH: String(LIMIT),
    });
  });
  afterEach(() => service.stop());

  const depthsOfChain = async (): Promise<readonly number[]> =>
    (await service.endOfChain()).map(({ depth }) => depth);
  const lastError = async (): Promise<string | null> =>
    (await service.runs()).at(-1)?.error ?? null;

  it('counts events that its tools publish', async () => {
    await service.listen('ping', [{ uses: 'looping.publish', with: { topic: 'ping' } }]);
    await service.publish('ping');
    expect(await depthsOfChain()).to.deep.equal([0, 1, 2]);
    expect(await lastError()).to.equal(cutAt(LIMIT, 'the event was not published'));
  });

  it('counts tools that its tools call', async () => {
    const task = await service.listen('ping', [
      { uses: 'looping.run', with: { task_id: '${task.id}' } },
    ]);
    await service.client.post(`/tasks/${task}/run_now`);
    expect(await depthsOfChain()).to.deep.equal([0, 1, 2]);
    expect(await lastError()).to.equal(cutAt(LIMIT, 'the run was not requested'));
  });

  it('counts commands that its tools send to the service', async () => {
    const { token } = service;
    const task = await service.listen('ping', [
      { uses: 'looping.ask', with: { task_id: '${task.id}', token } },
    ]);
    await service.client.post(`/tasks/${task}/run_now`);
    expect(await depthsOfChain()).to.deep.equal([0, 1, 2]);
    expect(await lastError()).to.equal(cutAt(LIMIT, 'the run was not requested'));
  });

  it('counts events that its subscribers publish', async () => {
    await service.publish('echo');
    const cuts = 'loops_cut_total{what="event"}';
    await eventually(async () => (await service.metric(cuts)) > 0);
    const events = await service.published('echo');
    expect(events.map(({ metadata }) => metadata.depth)).to.deep.equal([undefined, '1', '2']);
  });

  it('does not count its actions after the step has ended', async () => {
    await service.listen('ping', [{ uses: 'looping.leave', with: { topic: 'later' } }]);
    await service.publish('ping');
    await eventually(async () => (await service.published('later')).length > 0);
    const [later] = await service.published('later');
    expect(later?.metadata.depth).to.equal(undefined);
  });
});
