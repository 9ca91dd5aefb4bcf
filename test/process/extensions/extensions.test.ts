import { expect } from 'chai';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EventStream } from '../../support/event-stream.ts';
import { projectRoot } from '../../support/project-root.ts';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the extensions of a process', function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();

  async function start(settings: Readonly<Record<string, string>> = {}) {
    const data = join(directory(), 'data');
    const service = await ServiceProcess.start({ SVC_DATA_DIR: data, ...settings });
    const credentials = credentialsIn(data);
    const client = service.client(await signIn(service.client(), credentials));
    return { service, client, agent: credentials.agent_id };
  }

  it('load the example, whose tool pipelines use and whose subscriber receives events', async () => {
    const { service, client, agent } = await start({
      SVC_EXT_PATHS: join(projectRoot, 'examples'),
      SVC_EXT_HELLO_GREETING: 'Good day',
    });
    const greeted = await client.get('/ext/hello/greet/Ada');
    expect(greeted.at('message')).to.equal('Good day, Ada!');
    const task = await client.post('/tasks', {
      title: 'greet',
      description: 'by a tool of an extension',
      schedule_kind: 'event',
      schedule_expr: 'hello.*',
      created_by: agent,
      payload: { pipeline: [{ id: 'g', uses: 'hello.greet', with: { name: 'Bo' } }] },
    });
    expect(task.status, task.text).to.equal(201);
    expect(task.at('warnings')).to.deep.equal([]);
    const ran = await client.post(`/tasks/${task.textAt('id')}/run_now?wait=20`);
    expect(ran.at('details.run.state'), ran.text).to.equal('succeeded');
    const through = await client.get('/ext/hello/tasks');
    expect(through.at('items.0.id')).to.equal(task.at('id'));
    await client.post('/events', { topic: 'hello.you', payload: {}, source_agent_id: agent });
    await eventually(
      async () => {
        const heard = await client.get('/ext/hello/heard');
        expect(heard.at('topics')).to.deep.equal({ 'hello.you': 1 });
      },
      { limitMs: 15_000 },
    );
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
  });

  it('survive an uncaught error of one of them, and act as their own agents', async () => {
    const folder = join(directory(), 'own');
    await mkdir(folder);
    const manifest = {
      id: 'own',
      name: 'Own',
      version: '1.0.0',
      module: 'own.mjs',
      capabilities: ['ROUTES', 'EVENTS_PUB'],
    };
    await writeFile(join(folder, 'extension.json'), JSON.stringify(manifest));
    const module = `import { createServer } from 'node:net';
    export function setup({ routes, core, events }) {
      // Resources that it leaves open do not keep the process from ending.
      createServer().listen(0);
      setInterval(() => {}, 1_000);
      routes.post('/leave', (_request, response) => {
        setTimeout(() => { throw new Error('in a timer'); }, 1);
        void Promise.reject(new Error('in a promise'));
        setTimeout(() => process.abort(), 5);
        response.json({});
      });
      routes.get('/me', async (_request, response) =>
        response.json({ tasks: await core.request('GET', '/tasks'), id: await events.publish('own.x', {}) }));
    }`;
    await writeFile(join(folder, 'own.mjs'), module);
    const { service, client } = await start({ SVC_EXT_PATHS: folder });
    const me = await client.get('/ext/own/me');
    expect(me.at('tasks.status'), me.text).to.equal(200);
    await eventually(async () => {
      const recent = await client.get('/stream/recent?topic=own.x');
      expect(recent.at('events.0.event_id')).to.equal(me.at('id'));
      const agents = await client.get('/agents?name_filter=ext-own');
      expect(agents.list).to.have.lengthOf(1);
    });
    await client.post('/ext/own/leave');
    await eventually(async () => {
      const status = await client.get('/ext/status');
      expect(status.at('extensions.own.state'), status.text).to.equal('failed');
      expect(status.at('extensions.own.info.reason')).to.equal('process.abort was called');
      expect(status.at('extensions.own.info.faults')).to.equal(3);
    });
    expect((await client.get('/health')).status).to.equal(200);
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
  });

  it('publish and report events, also to reconnecting clients, until their token is revoked', async () => {
    const { service, client } = await start();
    const { token } = client;
    const url = `${service.address}/ext/events_demo/subscribe/news`;
    const live = await EventStream.open(url, token);
    const ids: unknown[] = [];
    for (const body of [[1], 'two', null]) {
      const answer = await client.post('/ext/events_demo/publish/news', body);
      expect(answer.at('success'), answer.text).to.equal(true);
      ids.push(answer.at('event_id'));
    }
    const messages = await first(live, 3);
    expect(messages.map(({ data }) => data)).to.deep.equal([
      { stream: 'news', id: ids[0], data: [1] },
      { stream: 'news', id: ids[1], data: 'two' },
      { stream: 'news', id: ids[2], data: null },
    ]);
    live.close();
    const back = await EventStream.open(url, token, { 'last-event-id': String(ids[1]) });
    expect((await first(back, 1)).map(({ id }) => id)).to.deep.equal([ids[2]]);
    back.close();
    const whole = await EventStream.open(`${url}?from=start`, token);
    expect((await first(whole, 3)).map(({ id }) => id)).to.deep.equal(ids);
    expect(whole.ended).to.equal(false);
    expect((await client.post('/agents/auth/revoke', { token })).status).to.equal(200);
    await found(() => whole.ended || undefined, { limitMs: 15_000, what: 'the end of the stream' });
    // An open stream does not keep the service from ending.
    const again = await signIn(service.client(), credentialsIn(join(directory(), 'data')));
    const open = await EventStream.open(url, again);
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
    open.close();
  });
});

/** The first messages, once there are that many. */
async function first(stream: EventStream, count: number) {
  await eventually(() => void expect(stream.messages).to.have.lengthOf(count));
  return stream.messages;
}
