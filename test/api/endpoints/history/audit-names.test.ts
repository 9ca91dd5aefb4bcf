import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { toNewEvents } from '../../../../domain/handle.ts';
import { streams } from '../../../../domain/streams.ts';
import { EventStream } from '../../../support/event-stream.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { auditOf, type Item } from '../../auditing.ts';
import { plainTask } from '../../plain-task.ts';

describe('the audit', () => {
  const api = useRunningApi();
  let auditor: SignedIn;
  let agent: SignedIn;
  let count = 0;
  let name = '';

  before(async () => {
    auditor = await api().signIn(['audit:read']);
  });
  beforeEach(async () => {
    count += 1;
    name = `Worker ${count}`;
    agent = await api().signIn(['tasks:read', 'tasks:write'], name);
  });
  const audit = (query: string): Promise<readonly Item[]> => auditOf(api(), auditor, query);
  const typesOf = async (query: string): Promise<readonly string[]> =>
    (await audit(query)).map(({ type }) => type);

  async function makeTask(title: string): Promise<string> {
    const task = { ...plainTask(agent.id), title };
    return (await agent.client.post('/tasks', task)).textAt('id');
  }

  describe('names', () => {
    it('actors, and the tasks that they changed, for an auditor without other scopes', async () => {
      const id = await makeTask('Night shift');
      const [item] = await audit(`actor=${agent.id}`);
      expect(item).to.include({ actor: agent.id, actor_name: name, task_title: 'Night shift' });
      const history = await auditor.client.get(`/tasks/${id}/history`);
      expect(history.at('items.0.actor_name')).to.equal(name);
      const [bySystem] = await audit('actor=service');
      expect(bySystem?.actor_name ?? null).to.equal(null);
    });

    it('agents for an auditor who reads their list', async () => {
      const list = await auditor.client.get(`/agents?name_filter=${encodeURIComponent(name)}`);
      expect(list.list[0]).to.include({ id: agent.id, name });
      expect((await auditor.client.get(`/agents/${agent.id}`)).at('name')).to.equal(name);
      expect((await agent.client.get('/agents')).status).to.equal(403);
      expect((await auditor.client.delete(`/agents/${agent.id}`)).status).to.equal(403);
    });

    it('the task of a run and of a refusal', async () => {
      const id = await makeTask('Nightly report');
      const run = await agent.client.post(`/tasks/${id}/run_now`);
      const runId = run.textAt('details.run_id');
      await agent.client.post(`/runs/${runId}/cancel`);
      await agent.client.post(`/tasks/${id}/cancel`);
      expect((await agent.client.post(`/tasks/${id}/pause`)).status).to.equal(409);
      const items = await audit(`actor=${agent.id}`);
      expect(items.map(({ type, task_title }) => [type, task_title])).to.deep.include.members([
        ['CommandRefused', 'Nightly report'],
        ['TaskCanceled', 'Nightly report'],
        ['RunRequested', 'Nightly report'],
        ['RunCanceled', 'Nightly report'],
      ]);
      const ofRun = await audit(`stream=${streams.run(runId)}`);
      expect(ofRun[0]).to.include({ actor_name: name, task_title: 'Nightly report' });
      const byService = await audit(`actor=service&stream=${streams.run(runId)}`);
      for (const { task_title } of byService) expect(task_title).to.equal('Nightly report');
    });

    it('other subjects: agents, keys, secrets, workers, namespaces and topics', async () => {
      const { client, id: admin } = api().admin;
      const made = { name: `key of ${name}`, scopes: ['tasks:read'] };
      const key = await client.post(`/agents/${agent.id}/keys`, made);
      await client.put(`/secrets/SECRET_${count}`, { value: 'x' });
      await client.post('/namespaces', { name: `place-${count}` });
      await client.post('/events', {
        topic: `topic.${count}`,
        payload: {},
        source_agent_id: admin,
      });
      const worker = { name: `worker of ${name}`, slots: 1 };
      const tools = [{ name: `tool.${count}`, description: '-', schema: {} }];
      await client.post('/workers', { ...worker, tools });
      await client.put(`/agents/${agent.id}`, { name: `${name} renamed` });
      const items = await auditOf(api(), api().admin, `actor=${admin}`);
      expect(items.map(({ type, subject }) => [type, subject])).to.deep.include.members([
        ['AgentUpdated', `${name} renamed`],
        ['ApiKeyCreated', `key of ${name}`],
        ['SecretSet', `SECRET_${count}`],
        ['NamespaceCreated', `place-${count}`],
        ['EventPublished', `topic.${count}`],
        ['WorkerRegistered', `worker of ${name}`],
      ]);
      const found = await audit(`search=${encodeURIComponent(`KEY of ${name}`)}`);
      expect(found.map(({ stream }) => stream)).to.deep.equal([`apikey-${key.textAt('id')}`]);
      const id = await makeTask('Not a subject');
      expect((await audit(`stream=task-${id}`))[0]).to.include({ subject: null });
    });

    it('records by their present names, and removed records by their last ones', async () => {
      const id = await makeTask('Old title');
      await agent.client.put(`/tasks/${id}`, { title: 'New title' });
      await agent.client.post(`/tasks/${id}/cancel`);
      const { client } = api().admin;
      await client.put(`/agents/${agent.id}`, { name: `${name} renamed` });
      expect((await client.delete(`/agents/${agent.id}`)).status).to.equal(200);
      const items = await audit(`actor=${agent.id}`);
      expect(items).to.have.lengthOf(3);
      for (const item of items) {
        expect(item).to.include({ actor_name: `${name} renamed`, task_title: 'New title' });
      }
    });
  });

  describe('can be filtered', () => {
    it('by source, request and outcome', async () => {
      const id = await makeTask('Filtered');
      const headers = { 'x-request-id': `request-${count}` };
      await agent.client.post(`/tasks/${id}/pause`, undefined, { headers });
      await agent.client.put(`/tasks/${id}`, {}, { headers: { 'if-match': '"99"' } });
      const by = `actor=${agent.id}`;
      expect(await typesOf(`correlation_id=request-${count}`)).to.deep.equal(['TaskPaused']);
      expect(await typesOf(`${by}&outcome=refused`)).to.deep.equal(['CommandRefused']);
      expect(await typesOf(`${by}&outcome=done`)).to.deep.equal(['TaskPaused', 'TaskCreated']);
      expect(await typesOf(`${by}&outcome=failed`)).to.deep.equal([]);
      expect(await typesOf(`${by}&source=127.0.0.1`)).to.have.lengthOf(3);
      expect(await typesOf(`${by}&source=203.0.113.1`)).to.deep.equal([]);
      const stream = `stream=${streams.task(id)}`;
      expect(await typesOf(`${stream}&correlation_id=request-${count}`)).to.deep.equal([
        'TaskPaused',
      ]);
    });

    it('by a string in the action, reason, actor, task or other subject', async () => {
      const id = await makeTask(`Invoices ${count}`);
      await agent.client.post(`/tasks/${id}/pause`, undefined, {
        headers: { 'x-reason': 'too NOISY' },
      });
      const by = `actor=${agent.id}`;
      expect(await typesOf(`${by}&search=noisy`)).to.deep.equal(['TaskPaused']);
      expect(await typesOf(`${by}&search=taskCREATED`)).to.deep.equal(['TaskCreated']);
      expect(await typesOf(`search=${encodeURIComponent(`invoices ${count}`)}`)).to.have.lengthOf(
        2,
      );
      const types = await typesOf(`search=${encodeURIComponent(name)}`);
      expect(types).to.deep.equal(['TaskPaused', 'TaskCreated', 'AgentRegistered']);
      expect(await typesOf(`${by}&search=nowhere`)).to.deep.equal([]);
      const byService = await audit('actor=service&search=nowhere');
      expect(byService).to.deep.equal([]);
    });

    it('page by page, each item once, however many other items lie between', async () => {
      const { store } = api();
      const context = { source: 's', correlationId: 'many', actor: agent.id, now: Date.now() };
      for (let stream = 0; stream < 3; stream += 1) {
        const id = newId(Date.now());
        const events = Array.from({ length: 400 }, () => {
          return {
            type: 'AuditRead',
            data: { agent_id: agent.id, action: 'GET /x', asked: {} },
          } as const;
        });
        const to = streams.auditReads(id, '2026-03-01');
        const own = { ...context, commandId: newId(Date.now()), correlationId: `many-${stream}` };
        await store.append(to, toNewEvents(to, events, own), 'any');
      }
      const seen: string[] = [];
      const after = await store.head();
      for (let cursor = ''; ;) {
        const page = await auditor.client.get(
          `/audit?correlation_id=many-0&limit=150&after=${after}${cursor}`,
        );
        expect(page.at('total')).to.equal(null);
        const items = page.at('items') as readonly Item[];
        seen.push(...items.map(({ position }) => position));
        const next = page.at('next_cursor');
        if (next === null) break;
        cursor = `&cursor=${next as string}`;
      }
      expect(seen).to.have.lengthOf(400);
      expect(new Set(seen).size).to.equal(400);
    });

    it('in the live stream, which has names too', async () => {
      const url = `${api().url}/audit/live?search=watched&outcome=done`;
      const live = await EventStream.open(url, String(auditor.client.token));
      await makeTask('Not meant');
      await makeTask('To be Watched');
      const message = await live.named('audit.done');
      expect(message.data).to.include({ actor_name: name, task_title: 'To be Watched' });
      live.close();
    });
  });
});
