import { expect } from 'chai';
import { endpoints } from '../../../api/app.ts';
import { newId } from '../../../domain/ids.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';
import { refusalTable, type Row } from './refusal-table.ts';

describe('every endpoint of the HTTP interface refuses', () => {
  const api = useRunningApi();
  const ids: Record<string, string> = {};
  let scopeless: SignedIn;
  before(async () => {
    const { admin } = api();
    ids['agent'] = (await api().signIn([])).id;
    const task = await admin.client.post('/tasks', plainTask(admin.id));
    ids['task'] = task.textAt('id');
    const run = await admin.client.post(`/tasks/${ids['task']}/run_now`);
    ids['run'] = run.textAt('details.run_id');
    ids['key'] = 'printer';
    ids['projection'] = 'runs';
    ids['delivery'] = newId(0);
    ids['secret'] = 'API_TOKEN';
    await admin.client.put('/secrets/API_TOKEN', { value: 'hush' });
    ids['approval'] = newId(0);
    ids['api_key'] = newId(0);
    ids['job'] = newId(0);
    const offered = [{ name: 'some.tool', description: '', schema: {} }];
    const worker = { name: 'w', tools: offered, slots: 1 };
    ids['worker'] = (await admin.client.post('/workers', worker)).textAt('worker_id');
    const backfill = await admin.client.post(`/tasks/${ids['task']}/backfill`, {
      from: '2026-01-01T00:00:00Z',
      to: '2026-01-01T05:00:00Z',
    });
    ids['backfill'] = backfill.textAt('details.backfill_id');
    scopeless = await api().signIn(['something:else']);
  });

  const at = (path: string, id?: string): string =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => id ?? ids[name] ?? '');
  /** A valid body, for this admin. */
  const bodyOf = ({ body }: Row): object | undefined =>
    body && {
      ...body,
      ...('created_by' in body ? { created_by: api().admin.id } : {}),
      ...('source_agent_id' in body ? { source_agent_id: api().admin.id } : {}),
    };
  const takesBody = ({ method, form, takesAll }: Row): boolean =>
    (method === 'POST' || method === 'PUT') && form !== true && takesAll !== true;
  const json = { 'content-type': 'application/json' };

  it('the requests in its own row of this table', () => {
    const named = (method: string, path: string): string =>
      `${method.toUpperCase()} ${path.replaceAll(/:\w+|\{\w+\}|(?<=(?:callbacks|artifacts|namespaces)\/)[^/{]+/g, '{}')}`;
    const inTable = refusalTable.map(({ method, path }) => named(method, path));
    const served = endpoints.flatMap(({ method, paths }) =>
      paths.map((path) => named(method, path)),
    );
    expect(inTable).to.have.members(served);
  });

  for (const row of refusalTable) {
    const { method, path, scope, resource } = row;
    describe(`${method} ${path}`, () => {
      const send = (options: Parameters<SignedIn['client']['send']>[2] = {}, to = at(path)) =>
        api().admin.client.send(method, to, options);

      if (scope !== null) {
        it('a request without a token, before any other check', async () => {
          for (const headers of [{}, { authorization: 'Bearer nonsense' }]) {
            const options = { token: null, headers: { ...json, ...headers }, raw: '{' };
            const answer = await send(options, at(path, 'no-id'));
            expect(answer.status).to.equal(401);
            expect(answer.at('error')).to.equal('unauthorized');
            expect(answer.at('details')).to.deep.equal({ required_scopes: [scope].flat() });
            expect(answer.header('WWW-Authenticate')).to.equal('Bearer');
          }
        });
      }

      if (scope !== null && scope.length > 0) {
        it('a request with too few scopes, before any other check', async () => {
          const options = { token: scopeless.client.token, headers: json, raw: '{' };
          const answer = await send(options, at(path, 'no-id'));
          expect(answer.status).to.equal(403);
          expect(answer.at('error')).to.equal('forbidden');
          expect(answer.at('details')).to.deep.equal({
            required_scopes: [scope].flat(),
            granted_scopes: ['something:else'],
          });
        });
      }

      if (resource !== undefined) {
        it('an invalid id', async () => {
          for (const id of ['x', `${newId(0)}0`, '%20', '..%2f..', newId(0).replaceAll('-', '')]) {
            const body = bodyOf(row);
            const answer = await send(body ? { body } : {}, at(path, id));
            expect(answer.status, `${id} ${answer.text}`).to.equal(400);
            expect(answer.textAt('details.field')).to.match(/id$/);
          }
        });

        it('an unknown id', async () => {
          const unknown = newId(0);
          const body = bodyOf(row);
          const answer = await send(
            { ...(body ? { body } : {}), headers: { 'if-match': '"77"' } },
            `${at(path, unknown.toUpperCase())}?${row.needed ?? ''}`,
          );
          expect(answer.status, answer.text).to.equal(404);
          expect(answer.at('error')).to.equal('not_found');
          expect(answer.at('details')).to.deep.equal({ resource, id: unknown });
        });
      }

      if (takesBody(row)) {
        it('bodies that are too large, of another type, or broken', async () => {
          const large = await send({
            raw: `"${'x'.repeat(1_048_576)}"`,
            headers: { 'content-type': 'text/plain' },
          });
          expect(large.status).to.equal(413);
          expect(large.at('error')).to.equal('payload_too_large');
          const foreign = [
            { 'content-type': 'text/plain' },
            { 'content-type': 'application/x-www-form-urlencoded' },
            { 'content-type': 'application/json; charset=utf-16' },
            { ...json, 'content-encoding': 'gzip' },
            {},
          ];
          for (const headers of foreign) {
            const answer = await send({ raw: '{', headers });
            expect(answer.status, JSON.stringify(headers)).to.equal(415);
            expect(answer.at('error')).to.equal('unsupported_media_type');
          }
          for (const raw of ['{', 'undefined', ' ', '{"a":1,}', Buffer.from([0x22, 0xff, 0x22])]) {
            const answer = await send({ raw, headers: json });
            expect(answer.status, String(raw)).to.equal(400);
            expect(answer.at('details.field')).to.equal('body');
          }
        });

        it('bodies of another shape', async () => {
          for (const raw of ['[]', '5', '"x"', 'null', 'true']) {
            const answer = await send({ raw, headers: json });
            expect(answer.status, raw).to.equal(400);
            expect(answer.at('details.field'), raw).to.equal('body');
          }
          for (const [raw, field] of [
            ['{"__proto__": {"admin": true}}', '__proto__'],
            ['{"a": [{"\\u005f_proto__": 1}]}', 'a.0.__proto__'],
            ['{"a": {"b": 1e999}}', 'a.b'],
            [`{"a": ${'['.repeat(200)}${']'.repeat(200)}}`, 'body'],
            [`${'['.repeat(400_000)}${']'.repeat(400_000)}`, 'body'],
          ] as const) {
            const answer = await send({ raw, headers: json });
            expect(answer.status, raw.slice(0, 40)).to.equal(400);
            expect(answer.at('details.field'), raw.slice(0, 40)).to.equal(field);
          }
        });

        it('unknown fields, however many', async () => {
          const unknown = Object.fromEntries(
            Array.from({ length: 5000 }, (_, index) => [`u${index}`, 1]),
          );
          const answer = await send({ body: { ...bodyOf(row), ...unknown } });
          expect(answer.status).to.equal(400);
          expect(answer.textAt('details.field')).to.match(/^u\d+$/);
          expect(answer.textAt('details.issue')).to.equal('is not a known field');
          expect(answer.text.length).to.be.lessThan(20_000);
        });
      }

      for (const field of row.required ?? []) {
        it(`a body without ${field}`, async () => {
          const body = Object.fromEntries(
            Object.entries(bodyOf(row) ?? {}).filter(([name]) => name !== field),
          );
          const answer = await send({ body });
          expect(answer.status, answer.text).to.equal(400);
          expect(answer.at('details.field')).to.equal(field);
          expect(answer.textAt('details.issue')).to.match(/^is required/);
        });
      }

      if ((row.faults ?? []).length > 0) {
        it('invalid fields, naming them', async () => {
          for (const [field, value, named = field] of row.faults ?? []) {
            const answer = await send({ body: { ...bodyOf(row), [field]: value } });
            const what = `${field}: ${JSON.stringify(value).slice(0, 60)} ${answer.text.slice(0, 400)}`;
            expect(answer.status, what).to.equal(400);
            expect(answer.at('error')).to.equal('bad_request');
            expect(answer.at('details.field'), what).to.equal(named);
            expect(answer.at('details.issues.0.field'), what).to.equal(named);
            expect(answer.textAt('message'), what).to.contain(named);
            expect(answer.textAt('request_id')).to.equal(answer.header('X-Request-Id'));
          }
        });
      }

      if ((row.queries ?? []).length > 0) {
        it('invalid query parameters, naming them', async () => {
          for (const [query, field] of row.queries ?? []) {
            const answer = await send({}, `${at(path)}?${query}`);
            expect(answer.status, `${query} ${answer.text}`).to.equal(400);
            expect(answer.at('details.field'), query).to.equal(field);
          }
        });
      }
    });
  }
});
