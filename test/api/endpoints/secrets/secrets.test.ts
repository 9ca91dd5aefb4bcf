import { expect } from 'chai';
import { BEGINNING } from '../../../../domain/event-store.ts';
import { plainTask } from '../../plain-task.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';

const VALUE = 'open sesame 17';

describe('/secrets', () => {
  const api = useRunningApi();
  let writer: SignedIn;
  before(async () => {
    writer = await api().signIn(['secrets:write']);
  });

  const set = (name: string, more: object = {}) =>
    writer.client.put(`/secrets/${name}`, { value: VALUE, ...more });

  it('accepts a secret, and shows it without its value', async () => {
    const made = await set('FIRST', { allow_hosts: ['api.example.com:443'] });
    expect(made.status).to.equal(201);
    expect(made.json).to.deep.include({
      name: 'FIRST',
      namespace: 'default',
      version: 1,
      last_used: null,
      allow_hosts: ['api.example.com:443'],
      allow_tasks: null,
    });
    const again = await set('FIRST');
    expect([again.status, again.at('version')]).to.deep.equal([200, 2]);
    expect(again.at('allow_hosts')).to.deep.equal([]);
    expect((await writer.client.get('/secrets/FIRST')).json).to.deep.equal(again.json);
  });

  it('lists secrets by name', async () => {
    await set('B');
    await set('A');
    const listed = await writer.client.get('/secrets');
    const names = (listed.at('items') as { name: string }[]).map(({ name }) => name);
    expect(names.filter((name) => ['A', 'B'].includes(name))).to.deep.equal(['A', 'B']);
    expect(JSON.stringify(listed.json)).not.to.match(/sesame|sealed/);
  });

  it('allows reads with secrets:read, but no writes', async () => {
    const reader = await api().signIn(['secrets:read']);
    expect((await reader.client.get('/secrets')).status).to.equal(200);
    expect((await reader.client.put('/secrets/A', { value: 'b' })).status).to.equal(403);
    expect((await reader.client.delete('/secrets/A')).status).to.equal(403);
  });

  it('accepts an expiry with the value, and removes it with a value without one', async () => {
    const { clock } = api();
    const at = Math.ceil(clock.now() / 1000) * 1000 + 60_000;
    const inIndia = `${new Date(at + 5.5 * 3_600_000).toISOString().slice(0, 19)}+05:30`;
    const made = await set('SHORT', { expires_at: inIndia });
    expect(made.at('expires_at')).to.equal(new Date(at).toISOString());
    expect((await writer.client.get('/secrets/SHORT')).json).to.deep.equal(made.json);
    const again = await set('SHORT');
    expect(again.at('expires_at')).to.equal(null);
  });

  it('rejects an expiry that is not an instant in the future', async () => {
    const now = new Date(api().clock.now()).toISOString();
    for (const [expires_at, issue] of [
      [now, /^must be in the future, after .+Z; leave it out for a secret that never expires$/],
      ['2020-01-01T00:00:00Z', /^must be in the future/],
      ['2090-01-01T00:00:00', /offset/],
      ['in a week', /./],
    ] as const) {
      const answer = await set('LATE', { expires_at });
      expect(answer.status, expires_at).to.equal(400);
      expect(answer.at('details.field')).to.equal('expires_at');
      expect(answer.textAt('details.issue')).to.match(issue);
    }
    expect((await writer.client.get('/secrets/LATE')).status).to.equal(404);
  });

  it('lists secrets in order of expiry, without those that never expire', async () => {
    await set('NEVER');
    await set('LATER', { expires_at: '2090-01-02T00:00:00Z' });
    await set('SOON', { expires_at: '2090-01-01T00:00:00Z' });
    const namesBy = async (until: string): Promise<unknown> => {
      const listed = await writer.client.get(`/secrets?until=${until}`);
      return (listed.at('items') as { name: string }[]).map(({ name }) => name);
    };
    expect(await namesBy('2090-12-31T00:00:00Z')).to.deep.equal(['SOON', 'LATER']);
    expect(await namesBy('2090-01-01T00:00:00Z')).to.deep.equal(['SOON']);
    expect(await namesBy('2089-01-01T00:00:00Z')).to.deep.equal([]);
  });

  it('deletes a secret, whose version numbers continue if it is set again', async () => {
    await set('GONE');
    expect((await writer.client.delete('/secrets/GONE')).status).to.equal(200);
    for (const method of ['GET', 'DELETE'] as const) {
      expect((await writer.client.send(method, '/secrets/GONE')).status).to.equal(404);
    }
    const again = await set('GONE');
    expect([again.status, again.at('version')]).to.deep.equal([201, 2]);
  });

  it('checks the revision that the caller saw', async () => {
    const made = await set('SEEN');
    const stale = { headers: { 'if-match': '"7"' }, body: { value: 'x' } };
    expect((await writer.client.send('PUT', '/secrets/SEEN', stale)).status).to.equal(412);
    const seen = { 'if-match': made.header('ETag') ?? '' };
    const known = { headers: seen, body: { value: 'x' } };
    expect((await writer.client.send('PUT', '/secrets/SEEN', known)).status).to.equal(200);
  });

  it('shows no secrets of other namespaces, and none of its own to others', async () => {
    const { client } = api().admin;
    const body = { value: VALUE };
    const ghost = await client.put('/secrets/THEIRS?namespace=team-a', body);
    expect(ghost.status).to.equal(404);
    await client.post('/namespaces', { name: 'team-a' });
    const made = await client.put('/secrets/THEIRS?namespace=team-a', body);
    expect(made.at('namespace')).to.equal('team-a');
    for (const path of ['/secrets/THEIRS', '/secrets/THEIRS?namespace=team-a']) {
      const answer = await writer.client.get(path);
      expect(answer.status).to.equal(404);
    }
    expect((await writer.client.get('/secrets?namespace=team-a')).status).to.equal(404);
    expect(JSON.stringify((await writer.client.get('/secrets')).json)).not.to.include('THEIRS');
    const put = await writer.client.put('/secrets/THEIRS?namespace=team-a', body);
    expect(put.status).to.equal(404);
    expect((await client.delete('/namespaces/team-a')).status).to.equal(409);
    const own = await client.get('/secrets?namespace=team-a');
    expect(own.at('total')).to.equal(1);
    expect(JSON.stringify((await client.get('/secrets')).json)).to.include('THEIRS');
  });

  it('never stores the value unencrypted', async () => {
    await set('HIDDEN');
    const headers = { 'idempotency-key': 'put-hidden' };
    await writer.client.send('PUT', '/secrets/HIDDEN', { headers, body: { value: VALUE } });
    await writer.client.send('PUT', '/secrets/HIDDEN', {
      headers: { 'content-type': 'application/json' },
      raw: `{"value": "${VALUE}", }`,
    });
    await set('HIDDEN', { value: [VALUE] });
    const { client } = api().admin;
    const streams = (await client.get('/streams?prefix=secret-')).at('items') as {
      readonly stream: string;
    }[];
    const pages = await Promise.all([
      client.get('/audit'),
      client.get('/events/export'),
      client.get('/secrets'),
      ...streams.map(({ stream }) => client.get(`/streams/${stream}`)),
    ]);
    const events = await api().store.readAll(BEGINNING, 1000);
    const seen = JSON.stringify([pages.map(({ text }) => text), events, api().logged]);
    expect(seen).to.include('SecretSet');
    for (const form of [VALUE, Buffer.from(VALUE).toString('base64').replace(/=+$/, '')]) {
      expect(seen).not.to.include(form);
    }
    expect(events.some(({ stream }) => stream.startsWith('idem-'))).to.equal(false);
    const [sealed] = events.filter(({ type }) => type === 'SecretSet');
    const shown = await client.get(`/streams/${sealed?.stream ?? ''}`);
    expect(shown.at('items.0.data.sealed')).to.equal('***');
  });

  it('rotates the key, and encrypts all secrets with the new one', async () => {
    await set('ROTATED');
    const { client } = api().admin;
    const before = (await writer.client.get('/secrets/ROTATED')).textAt('key_id');
    const rotated = await client.post('/secrets/rotate-key');
    const key = rotated.textAt('key_id');
    expect(key).not.to.equal(before);
    expect(rotated.json).to.deep.include({ generated: true, unopened: [] });
    expect(rotated.at('resealed')).to.be.at.least(1);
    const listed = await client.get('/secrets?limit=200');
    const items = listed.at('items') as { key_id: string }[];
    expect(new Set(items.map(({ key_id }) => key_id))).to.deep.equal(new Set([key]));
    expect((await writer.client.post('/secrets/rotate-key')).status).to.equal(403);
  });
});

describe('a task that uses secrets', () => {
  const api = useRunningApi();
  const request = (more: object) => ({ uses: 'http.request', with: { url: 'http://a/', ...more } });
  const create = (...pipeline: readonly object[]) => {
    const { admin } = api();
    return admin.client.post('/tasks', { ...plainTask(admin.id), payload: { pipeline } });
  };

  const good: readonly object[] = [
    { url: 'https://a.example/${secrets.A}?b=${secrets.B}' },
    { headers: { authorization: 'Bearer ${secrets.A}' } },
    { query: { key: '${secrets.A}', keys: ['${secrets.A}', 'x'] } },
    { body: { deep: [{ token: '${ secrets.A }' }] } },
    { body: '${secrets."A"}' },
  ];
  for (const args of good) {
    it(`may use them as whole placeholders: ${JSON.stringify(args)}`, async () => {
      expect((await create(request(args))).status).to.equal(201);
    });
  }

  const expressions = [
    '${reverse(secrets.A)}',
    'x ${reverse(secrets.A)}',
    "${join('', [secrets.A, 'x'])}",
    "${secrets.A || 'none'}",
    "${secrets.A == 'a'}",
    '${secrets.A[0:3]}',
    '${secrets.A.length}',
    '${secrets}',
    '${secrets.*}',
    '${keys(secrets)}',
    '${@.secrets.A}',
    '${$.secrets.A}',
    '${@ | secrets.A}',
    '${[secrets.A]}',
    '${{a: secrets.A}}',
    "${starts_with(secrets.A, 'a') && 'yes'}",
    '${let $s = secrets in $s.A}',
    '${!secrets.A}',
    "${steps.a ? secrets.A : 'b'}",
  ];
  const bad: readonly (readonly [what: string, step: object, field: string])[] = [
    ...expressions.map(
      (text) => [text, request({ body: text }), 'payload.pipeline.0.with.body'] as const,
    ),
    ['if', { ...request({}), if: "starts_with(secrets.A, 'a')" }, 'payload.pipeline.0.if'],
    ['if in braces', { ...request({}), if: '${secrets.A}' }, 'payload.pipeline.0.if'],
    ['for_each', { ...request({}), for_each: '[secrets.A]' }, 'payload.pipeline.0.for_each'],
    ['an item', { ...request({}), for_each: ['${secrets.A}'] }, 'payload.pipeline.0.for_each.0'],
    ['echo', { uses: 'echo', with: '${secrets.A}' }, 'payload.pipeline.0.with'],
    [
      'log',
      { uses: 'log', with: { message: 'a ${secrets.A}' } },
      'payload.pipeline.0.with.message',
    ],
    ['the method', request({ method: '${secrets.A}' }), 'payload.pipeline.0.with.method'],
    [
      'a child',
      { uses: 'tasks.run', with: { task_id: '${secrets.A}' } },
      'payload.pipeline.0.with.task_id',
    ],
    [
      'an event',
      { uses: 'events.publish', with: { topic: 't', payload: { k: '${secrets.A}' } } },
      'payload.pipeline.0.with.payload.k',
    ],
    [
      'a transform',
      { uses: 'transform', with: { expression: '@', input: '${secrets.A}' } },
      'payload.pipeline.0.with.input',
    ],
    [
      'a group',
      { parallel: [{ uses: 'echo', with: '${secrets.A}' }] },
      'payload.pipeline.0.parallel.0.with',
    ],
  ];
  for (const [what, step, field] of bad) {
    it(`is rejected with a secret in ${what}`, async () => {
      const answer = await create(step);
      expect(answer.status).to.equal(400);
      expect(answer.at('details.field')).to.equal(field);
      expect(answer.textAt('details.issue')).to.match(/: a secret is used whole, as \$\{secrets/);
    });
  }

  it('may read a field named secrets of other values', async () => {
    const body = '${steps.a[?secrets].secrets | [0]} ${params.secrets.A}';
    expect((await create(request({ body }))).status).to.equal(201);
  });

  it('is rejected if its worker would get a secret', async () => {
    const { client } = api().admin;
    const schema = { properties: { key: { 'x-secret': true } } };
    const tools = [{ name: 'mail.send', description: '', schema }];
    await client.post('/workers', { name: 'w', tools, slots: 1 });
    const answer = await create({ uses: 'mail.send', with: { key: '${secrets.A}' } });
    expect(answer.textAt('details.issue')).to.include('let the worker read the secret itself');
  });

  it('is found by each of its secrets', async () => {
    const { client } = api().admin;
    const made = await create(request({ body: '${secrets.FOUND}' }), { uses: 'echo' });
    await create(request({ body: '${secrets.FOUND_TOO}' }));
    const found = await client.get('/tasks?secret=FOUND');
    expect(found.at('total')).to.equal(1);
    expect(found.at('items.0.id')).to.equal(made.at('id'));
    expect(found.at('items.0')).not.to.have.property('secrets');
    expect((await client.get(`/tasks/${made.textAt('id')}`)).json).not.to.have.property('secrets');
  });

  it('gets a warning about a secret that has expired, even in a dry run', async () => {
    const { admin, clock } = api();
    const { client } = admin;
    const expires_at = new Date(clock.now() + 60_000).toISOString();
    await client.put('/secrets/OLD', { value: 'hush', expires_at });
    const step = request({ body: '${secrets.OLD}' });
    const made = await create(step);
    expect(made.at('warnings')).to.deep.equal([]);
    clock.shift(60_000);
    const payload = { pipeline: [step] };
    const warning = `payload.pipeline: the secret OLD expired at ${expires_at}; steps that use it fail until it is set again`;
    const id = made.textAt('id');
    for (const answer of [
      await create(step),
      await client.put(`/tasks/${id}`, { payload }),
      await client.post('/tasks/check', { ...plainTask(admin.id), payload }),
      await client.post('/tasks/check', { task_id: id, payload }),
    ]) {
      expect(answer.at('warnings')).to.deep.equal([warning]);
    }
  });

  it('must be among the tasks that each of its secrets allows', async () => {
    const { client } = api().admin;
    const made = await create(request({}));
    const id = made.textAt('id');
    await client.put('/secrets/LIMITED', { value: 'hush', allow_tasks: [id] });
    const step = request({ body: '${secrets.LIMITED}' });
    const other = await create(step);
    expect(other.status).to.equal(400);
    expect(other.textAt('message')).to.include('may not use the secret LIMITED');
    const own = await client.put(`/tasks/${id}`, { payload: { pipeline: [step] } });
    expect(own.status).to.equal(200);
    const second = (await create(request({}))).textAt('id');
    const changed = await client.put(`/tasks/${second}`, { payload: { pipeline: [step] } });
    expect(changed.status).to.equal(400);
  });
});
