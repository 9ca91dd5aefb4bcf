import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';
import { plainTask } from '../plain-task.ts';

interface Row {
  readonly id: string;
  readonly type: string;
  readonly position: string;
  readonly task_id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const rowsOf = ({ text }: ReceivedResponse): readonly Row[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);

describe('an export', () => {
  const api = useRunningApi();
  let taskId = '';
  let runIds: readonly string[] = [];

  before(async () => {
    const { admin } = api();
    taskId = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    const requested: string[] = [];
    for (let n = 0; n < 120; n += 1) {
      const answer = await admin.client.post(`/tasks/${taskId}/run_now`);
      requested.push(answer.textAt('details.run_id'));
    }
    runIds = requested;
  });

  const get = (path: string): Promise<ReceivedResponse> => api().admin.client.get(path);

  describe('of runs', () => {
    it('has a line for each run, the first queued first', async () => {
      const answer = await get('/runs/export');
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.header('Content-Type')).to.equal('application/x-ndjson; charset=utf-8');
      expect(answer.header('Transfer-Encoding')).to.equal('chunked');
      expect(answer.header('Content-Disposition')).to.equal('attachment; filename="runs.ndjson"');
      expect(rowsOf(answer).map(({ id }) => id)).to.have.members(runIds);
      expect(rowsOf(answer)).to.deep.equal(
        rowsOf(await get(`/runs/export?task_id=${taskId}&state=queued&trigger=manual`)),
      );
      const shown = (await get(`/runs/${rowsOf(answer)[0]?.id}`)).json as Record<string, unknown>;
      const { plan: _, ...exported } = shown;
      expect(rowsOf(answer)[0]).to.deep.equal({
        ...exported,
        task_title: plainTask('').title,
        created_by_name: 'admin',
      });
    });

    it('continues after the run of a cursor', async () => {
      const all = rowsOf(await get('/runs/export')).map(({ id }) => id);
      const rest = rowsOf(await get(`/runs/export?cursor=${all[69] ?? ''}`));
      expect(rest.map(({ id }) => id)).to.deep.equal(all.slice(70));
      const refused = await get(`/runs/export?cursor=${newId(Date.now())}`);
      expect([refused.status, refused.at('details.field')]).to.deep.equal([400, 'cursor']);
    });

    it('accepts the filters of the list', async () => {
      const none = async (query: string): Promise<string> => {
        const answer = await get(`/runs/export?${query}`);
        expect(answer.status, answer.text).to.equal(200);
        return answer.text;
      };
      expect(await none('state=failed')).to.equal('');
      expect(await none('success=true')).to.equal('');
      expect(await none('success=true&state=failed')).to.equal('');
      expect(await none('start_time=2020-01-01T00:00:00Z')).to.equal('');
      expect(await none(`task_id=${newId(Date.now())}`)).to.equal('');
      expect(await none('end_time=2020-01-01T00:00:00Z')).to.equal('');
      expect(await none('until=2020-01-01T00:00:00Z')).to.equal('');
      expect(await none('since=2020-01-01T00:00:00Z')).to.not.equal('');
      const wrong = await get('/runs/export?since=soon&start_time=later&format=xml');
      expect(wrong.status).to.equal(400);
    });

    it('is CSV on request, with an end mark that counts its rows', async () => {
      const answer = await get('/runs/export?format=csv&end_mark=true');
      expect(answer.header('Content-Type')).to.match(/^text\/csv; charset=utf-8/);
      const lines = answer.text.trimEnd().split('\r\n');
      expect(lines[0]).to.match(/^id,task_id,/);
      expect(lines).to.have.lengthOf(122);
      expect(lines.at(-1)).to.equal(`end_of_export,120${','.repeat(21)}`);
      expect(
        new Set([lines[0], lines.at(-1)].map((line) => line?.split(',').length)).size,
      ).to.equal(1);
      const json = (await get('/runs/export?end_mark=true')).text.trimEnd().split('\n');
      expect(json.at(-1)).to.equal('{"end_of_export":{"rows":120}}');
    });

    it('needs the scope runs:read', async () => {
      const { client } = await api().signIn(['audit:read']);
      expect((await client.get('/runs/export')).status).to.equal(403);
      const reader = await api().signIn(['runs:read']);
      expect((await reader.client.get('/runs/export')).status).to.equal(200);
      expect((await reader.client.get('/runs/export', { token: null })).status).to.equal(401);
    });
  });

  describe('of events', () => {
    it('has a line for each event, in log order', async () => {
      const rows = rowsOf(await get('/events/export'));
      const positions = rows.map(({ position }) => position);
      expect(positions).to.deep.equal([...positions].sort());
      expect(rows.filter(({ type }) => type === 'RunRequested')).to.have.lengthOf(120);
      const cursor = positions[5] ?? '';
      const rest = rowsOf(await get(`/events/export?cursor=${cursor}`));
      expect(rest[0]?.position).to.equal(positions[6]);
      const requested = rows.find(({ type }) => type === 'RunRequested');
      expect(requested).to.include({ actor_name: 'admin', task_title: plainTask('').title });
    });

    it('filters by kind, type, task, stream, actor, request and time', async () => {
      const count = async (query: string): Promise<number> =>
        rowsOf(await get(`/events/export?${query}`)).length;
      const { id } = api().admin;
      expect(await count(`task_id=${taskId}&type=RunRequested`)).to.equal(120);
      expect(await count('kind=task,agent&type=TaskCreated')).to.equal(1);
      expect(await count(`stream=${streams.task(taskId)}`)).to.equal(1);
      expect(await count(`actor=${id}&type=TaskCreated,TaskPaused`)).to.equal(1);
      expect(await count('actor=service&type=TaskCreated')).to.equal(0);
      expect(await count('source=203.0.113.1')).to.equal(0);
      expect(await count(`until=${toIso(1)}`)).to.equal(0);
      expect(await count(`since=${toIso(1)}&type=TaskCreated`)).to.equal(1);
      const headers = { 'x-request-id': 'looked-for' };
      await api().admin.client.post(`/tasks/${taskId}/pause`, undefined, { headers });
      expect(await count('correlation_id=looked-for')).to.equal(1);
    });

    it('rejects unknown event names, and lists the known ones', async () => {
      const type = await get('/events/export?type=RunFaild');
      expect(type.status).to.equal(400);
      expect(type.textAt('details.issue')).to.match(/"RunFaild" is unknown; there are .*RunFailed/);
      expect((await get('/events/export?kind=runs')).status).to.equal(400);
      expect((await get('/events/export?kind=ext_mine')).status).to.equal(200);
      expect((await get('/events/export?cursor=12')).status).to.equal(400);
    });

    it('shows no hash of a secret', async () => {
      const { client } = api().admin;
      const { id } = await api().signIn([]);
      expect((await client.post(`/agents/${id}/credentials`)).status).to.equal(200);
      for (const format of ['ndjson', 'csv']) {
        const { text } = await get(`/events/export?type=AgentCredentialsSet&format=${format}`);
        expect(text)
          .to.contain('***')
          .and.not.match(/scrypt/i);
      }
    });

    it('needs the scope audit:read', async () => {
      const { client } = await api().signIn(['events:read', 'runs:read']);
      expect((await client.get('/events/export')).status).to.equal(403);
      const auditor = await api().signIn(['audit:read']);
      expect((await auditor.client.get('/events/export')).status).to.equal(200);
    });
  });

  it('requires an end mark over HTTP/1.0, which cannot show its end', async () => {
    const { client } = api().admin;
    const asked = (query: string): Promise<string> =>
      raw(
        api().url,
        `GET /runs/export${query} HTTP/1.0\r\nAuthorization: Bearer ${String(client.token)}\r\n\r\n`,
      );
    expect(await asked('')).to.match(/^HTTP\/1\.1 400 [\s\S]*end_mark/);
    expect(await asked('?end_mark=true')).to.match(/^HTTP\/1\.1 200 [\s\S]*"rows":120\}\}\n$/);
    expect((await get('/events/export?type=TaskCreated&end_mark=true')).text).to.match(
      /\n\{"end_of_export":\{"rows":1\}\}\n$/,
    );
  });

  it('has an error body if it fails before its first row', async () => {
    api().views.away = true;
    const answer = await get('/runs/export');
    api().views.away = false;
    expect([answer.status, answer.at('error')]).to.deep.equal([503, 'unavailable']);
    expect(api().exportPlaces.size).to.equal(0);
  });
});

describe('a long export', () => {
  const api = useRunningApi();
  const PAYLOAD = 'x'.repeat(100_000);

  before(async () => {
    const { admin } = api();
    for (let n = 0; n < 100; n += 1) {
      const event = { topic: 'large', payload: { text: PAYLOAD }, source_agent_id: admin.id };
      expect((await admin.client.post('/events', event)).status).to.equal(202);
    }
  });

  /** Starts an export, and reads none of it. */
  async function begin(token = String(api().admin.client.token)): Promise<IncomingMessage> {
    const asked = request(`${api().url}/events/export`, {
      headers: { authorization: `Bearer ${token}` },
      agent: false,
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    return response;
  }

  it('is no faster than its client, and stops when that disconnects', async () => {
    const response = await begin();
    expect(api().exportPlaces.size).to.equal(1);
    const memory = process.memoryUsage().external;
    expect((await api().admin.client.get('/health/live')).status).to.equal(200);
    response.destroy();
    await eventually(() => api().exportPlaces.size === 0);
    expect(process.memoryUsage().external - memory).to.be.lessThan(20_000_000);
  });

  it('has no end if the service stops, and so cannot be mistaken for a complete one', async () => {
    const broken = await begin();
    const closed = once(broken, 'error').catch(() => []);
    api().stopping.abort();
    broken.resume();
    const [error] = (await closed) as [Error & { readonly code?: string }];
    expect(error.code).to.equal('ECONNRESET');
    expect(broken.complete).to.equal(false);
    await eventually(() => api().exportPlaces.size === 0);
  });
});

describe('concurrent exports', () => {
  const api = useRunningApi();

  it('are limited to two per agent and eight per process', () => {
    const places = api().exportPlaces;
    const taken = ['a', 'a', 'b', 'b', 'c', 'c', 'd'].map((agent) => places.take(agent));
    expect(() => places.take('a')).to.throw(/too many exports of this agent/);
    taken.push(places.take('d'));
    expect(() => places.take('e')).to.throw(/too many exports of this process/);
    taken.shift()?.();
    expect(places.size).to.equal(7);
    places.take('a')();
    for (const release of taken) release();
    expect(places.size).to.equal(0);
  });
});

/** Everything received on a connection until it is closed. */
async function raw(url: string, text: string): Promise<string> {
  const { connect } = await import('node:net');
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.write(text);
  await once(socket, 'close');
  return received;
}
