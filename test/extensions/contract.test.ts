import { expect } from 'chai';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import WebSocket from 'ws';
import { projectRoot } from '../support/project-root.ts';
import { eventually } from '../support/signals.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

describe('an extension', () => {
  const hosting = useHosting();

  it('serves requests with a token, a parsed body and a metrics label for its route', async () => {
    const module = `export function setup({ routes, callerOf }) {
      routes.post('/things/:name', (request, response) =>
        response.json({ ...request.params, body: request.body, by: callerOf(request).agentId }));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { client } = await hosting().start();
    const answer = await client.post('/ext/plain/things/a', { b: [1] });
    expect(answer.json).to.deep.equal({ name: 'a', body: { b: [1] }, by: 'admin' });
    const refusals = await Promise.all([
      client.post('/ext/plain/things/a', {}, { token: null }),
      client.get('/ext/plain/nothing'),
      client.send('POST', '/ext/plain/things/a', {
        raw: '{',
        headers: { 'content-type': 'application/json' },
      }),
      client.send('POST', '/ext/plain/things/a', {
        raw: 'x',
        headers: { 'content-type': 'text/plain' },
      }),
      client.post('/ext/plain/things/a', { long: 'x'.repeat(10_000) }),
    ]);
    expect(refusals.map(({ status }) => status)).to.deep.equal([401, 404, 400, 415, 413]);
    expect(await hosting().metricsText()).to.include(
      'extension_requests_total{extension="plain",endpoint="/things/{name}",method="POST",status="200"} 1',
    );
  });

  it('has a default health endpoint, or its own', async () => {
    await hosting().write('plain', manifestOf('plain'), 'export function setup() {}');
    const own = `export function setup({ routes }) {
      routes.get('/health', (_request, response) => response.json({ status: 'fair', timestamp: new Date().toISOString(), version: '1', checks: {} }));
    }`;
    await hosting().write('own', manifestOf('own'), own);
    const { client } = await hosting().start();
    const plain = await client.get('/ext/plain/health');
    expect(plain.json).to.include({ status: 'healthy', version: '1.0.0' });
    expect((await client.get('/ext/own/health')).at('status')).to.equal('fair');
  });

  it('gets no more than SVC_EXT_GRANTS grants', async () => {
    const module = `export function setup(context) {
      reached.capabilities = context.capabilities;
      try { context.events; } catch (error) { reached.error = error; }
    }`;
    const manifest = manifestOf('plain', { capabilities: ['ROUTES', 'EVENTS_PUB'] });
    await hosting().write('plain', manifest, module);
    await hosting().start({ extensionGrants: { plain: ['ROUTES', 'TOOLS'] } });
    expect(reached['capabilities']).to.deep.equal(['ROUTES']);
    expect(reached['error']).to.deep.include({
      code: 'forbidden',
      details: { required_capability: 'EVENTS_SUB', granted_capabilities: ['ROUTES'] },
    });
  });

  it('responds with 403 if it uses a capability that was not granted', async () => {
    const module = `export function setup(context) {
      context.routes.get('/tell', async () => { await context.events.publish('a', {}); });
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { client } = await hosting().start();
    const answer = await client.get('/ext/plain/tell');
    expect(answer.status, answer.text).to.equal(403);
    expect(answer.at('error')).to.equal('forbidden');
    expect(answer.at('message')).to.equal('requires the capability EVENTS_SUB or EVENTS_PUB');
    expect(answer.at('details')).to.deep.equal({
      required_capability: 'EVENTS_SUB',
      granted_capabilities: ['ROUTES'],
    });
  });

  it('gets an error for a malformed WebSocket path', async () => {
    const module = `export function setup({ websocket }) { websocket('/chat', () => {}); }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { client } = await hosting().start();
    const { json } = await client.get('/ext/status');
    expect(JSON.stringify(json)).to.match(/path: must be a path like rooms\/lobby, without/);
  });

  it('needs its scope in header and token with SVC_REQUIRE_SCOPES', async () => {
    const module = `export function setup({ routes }) {
      routes.get('/', (_request, response) => response.json({}));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { client } = await hosting().start({ requireScopes: true });
    const scopes = { 'x-scopes': 'a ext:plain:routes' };
    const answers = await Promise.all([
      client.get('/ext/plain/', { token: null, headers: scopes }),
      client.get('/ext/plain/', { token: 'reader', headers: scopes }),
      client.get('/ext/plain/', { token: 'scoped' }),
      client.get('/ext/plain/', { token: 'scoped', headers: scopes }),
      client.get('/ext/plain/', { token: 'admin', headers: scopes }),
      client.get('/ext/status', { token: null }),
      client.get('/ext/observability/metrics', { token: null }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 403, 403, 200, 200, 200, 200]);
  });

  it('is set up at its first request if it is not eager', async () => {
    const module = `export function setup({ routes }) {
      reached.setups = (reached.setups ?? 0) + 1;
      routes.get('/', (_request, response) => response.json({ there: true }));
    }`;
    await hosting().write('lazy', manifestOf('lazy', { eager: false }), module);
    await hosting().write('off', manifestOf('off', { enabled: false }), module);
    const { client } = await hosting().start();
    expect((await client.get('/ext/status')).at('extensions.lazy.state')).to.equal('discovered');
    const both = await Promise.all([client.get('/ext/lazy/'), client.get('/ext/lazy/')]);
    expect(both.map((each) => each.at('there'))).to.deep.equal([true, true]);
    expect(reached['setups']).to.equal(1);
    expect((await client.get('/ext/off/')).status).to.equal(404);
    expect((await client.get('/ext/status')).at('extensions.off.state')).to.equal('disabled');
  });

  it('adds tools under its id, described and checked by their schemas', async () => {
    const module = `export function setup({ toolRegistry }) {
      reached.tools = toolRegistry;
      toolRegistry.registerTool('sayHello', ({ name }) => 'Hello ' + name,
        { type: 'object', required: ['name'] });
    }`;
    await hosting().write('plain', manifestOf('plain', { capabilities: ['TOOLS'] }), module);
    await hosting().start();
    expect(hosting().tools.of('default').find('plain.sayHello')?.tool?.description).to.equal(
      'Say hello',
    );
    type Tools = { getTool(name: string): { call(args: unknown, how: object): Promise<unknown> } };
    const tool = (reached['tools'] as Tools).getTool('plain.sayHello');
    expect(await tool.call({ name: 'Ada' }, { actAs: 'plain' })).to.equal('Hello Ada');
    const refused = await tool.call({}, { actAs: 'plain' }).catch((error: unknown) => error);
    expect(refused).to.deep.include({ code: 'bad_request' });
  });

  it('continues after the last handled event when the process restarts', async () => {
    const module = `export async function setup({ events }) {
      await events.subscribe('orders.#', ({ data, topic }) => {
        (reached.seen ??= []).push([topic, data.n]);
      });
    }`;
    await hosting().write('plain', manifestOf('plain', { capabilities: ['EVENTS_SUB'] }), module);
    await hosting().publish('orders.new', { n: 0 });
    await hosting().start();
    await hosting().publish('orders.new', { n: 1 });
    await hosting().publish('other', { n: 2 });
    const seen = (n: number) => eventually(() => void expect(reached['seen']).to.have.lengthOf(n));
    await seen(1);
    await hosting().stop();
    await hosting().publish('orders.gone', { n: 3 });
    await hosting().start();
    await seen(2);
    expect(reached['seen']).to.deep.equal([
      ['orders.new', 1],
      ['orders.gone', 3],
    ]);
  });

  it('serves its folder static', async () => {
    const manifest = manifestOf('plain', { capabilities: ['STATIC'] });
    await hosting().write('plain', manifest, 'export function setup() {}');
    const files = join(hosting().folder, 'plain/static');
    await mkdir(files);
    await writeFile(join(files, 'index.html'), '<p>here</p>');
    const { client } = await hosting().start();
    const page = await client.get('/ext/plain/');
    expect([page.status, page.text]).to.deep.equal([200, '<p>here</p>']);
    expect(page.header('content-security-policy')).to.include("script-src 'self'");
    const moved = await client.get('/ext/plain');
    expect([moved.status, moved.header('location')]).to.deep.equal([308, '/ext/plain/']);
    expect((await client.get('/ext/plain/static/../module.mjs')).status).to.equal(404);
    expect((await client.get('/ext/plain/static/none.js')).status).to.equal(404);
  });

  it('sends a compressed file to clients that accept it, and lets browsers cache a hashed one', async () => {
    const manifest = manifestOf('plain', { capabilities: ['STATIC'] });
    await hosting().write('plain', manifest, 'export function setup() {}');
    const files = join(hosting().folder, 'plain/static');
    await mkdir(files);
    const name = 'main.0123456789abcdef.js';
    await writeFile(join(files, name), 'plain');
    await writeFile(join(files, `${name}.br`), 'as brotli');
    await writeFile(join(files, `${name}.gz`), 'as gzip');
    await writeFile(join(files, 'other.js'), 'other');
    const { client } = await hosting().start();
    const get = (codings: string, file = name) =>
      client.get(`/ext/plain/static/${file}`, { headers: { 'accept-encoding': codings } });
    for (const [codings, coding, text] of [
      ['gzip, deflate, br', 'br', 'as brotli'],
      ['gzip, br;q=0', 'gzip', 'as gzip'],
      ['deflate', undefined, 'plain'],
    ] as const) {
      const answer = await get(codings);
      expect([answer.headers['content-encoding'], answer.text]).to.deep.equal([coding, text]);
      expect(answer.header('content-type')).to.match(/^(text|application)\/javascript/);
      expect(answer.header('vary')).to.include('Accept-Encoding');
      expect(answer.header('cache-control')).to.equal('private, max-age=31536000, immutable');
    }
    const other = await get('br', 'other.js');
    expect([other.headers['content-encoding'], other.text]).to.deep.equal([undefined, 'other']);
    expect(other.header('cache-control')).to.equal('no-cache');
    await rm(join(files, `${name}.br`));
    const gone = await get('br');
    expect([gone.status, gone.headers['content-encoding']]).to.deep.equal([404, undefined]);
  });

  it('accepts WebSockets, with the token as a subprotocol', async () => {
    const module = `export function setup({ websocket }) {
      websocket('echo', (socket) => socket.onMessage((message) =>
        socket.send({ message, by: socket.caller.agentId })));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { url } = await hosting().start();
    const address = `${url.replace('http', 'ws')}/ext/plain/ws/`;
    const client = new WebSocket(`${address}echo`, ['svc.token', 'reader']);
    const answer = new Promise((resolve) =>
      client.once('message', (data: Buffer) => resolve(data.toString())),
    );
    await new Promise((open) => client.once('open', open));
    client.send('[1]');
    expect(await answer).to.equal('{"message":[1],"by":"reader"}');
    const closed = new Promise((resolve) => client.once('close', resolve));
    client.send('not JSON');
    expect(await closed).to.equal(1007);
    for (const [path, protocols, status] of [
      ['echo', [], 401],
      ['none', ['svc.token', 'reader'], 404],
    ] as const) {
      const refused = new WebSocket(address + path, [...protocols]);
      const message = await new Promise((resolve) =>
        refused.once('error', (error) => resolve(error.message)),
      );
      expect(message).to.equal(`Unexpected server response: ${status}`);
    }
  });

  it('can be an npm package with svc.plugins', async () => {
    const folder = join(hosting().folder, '..', 'node_modules', 'svc-plugin');
    await mkdir(folder, { recursive: true });
    const about = {
      name: 'svc-plugin',
      version: '2.0.0',
      svc: { plugins: { plug: './main.mjs' } },
    };
    await writeFile(join(folder, 'package.json'), JSON.stringify(about));
    const module = `export function setup({ routes }) {
      routes.get('/', (_request, response) => response.json({ plugged: true }));
    }`;
    await writeFile(join(folder, 'main.mjs'), module);
    const { client } = await hosting().start({ extensionPaths: [] }, [join(folder, '../..')]);
    expect((await client.get('/ext/plug/')).at('plugged')).to.equal(true);
    const status = await client.get('/ext/status');
    expect(status.at('discovery_sources')).to.deep.equal(['builtin', 'entry_point']);
    expect(status.at('extensions.plug.info.version')).to.equal('2.0.0');
  });

  it('can be the example, installed as an npm package', async () => {
    const folder = join(hosting().folder, '..', 'node_modules', 'svc-extension-hello');
    await cp(join(projectRoot, 'examples/hello'), folder, { recursive: true });
    const { client } = await hosting().start({ extensionPaths: [] }, [join(folder, '../..')]);
    const status = await client.get('/ext/status');
    expect(status.at('extensions.hello.state'), status.text).to.equal('loaded');
    expect(status.at('extensions.hello.info.source')).to.equal('entry_point');
    expect((await client.get('/ext/hello/greet/Ada')).at('message')).to.equal('Hello, Ada!');
    expect(hosting().tools.of('default').find('hello.greet')?.tool).not.to.equal(undefined);
  });

  it('fails if its endpoint descriptions are invalid', async () => {
    const setup = 'export function setup() {}';
    const module = (endpoints: string): string =>
      `${setup}\nexport const endpoints = ${endpoints};`;
    const good = "{ method: 'get', path: '/a', summary: 'a', scopes: null, answers: { 200: {} } }";
    await hosting().write('good', manifestOf('good'), module(`[${good}]`));
    await hosting().write('none', manifestOf('none'), module('7'));
    await hosting().write('wrong', manifestOf('wrong'), module(`[{ ...${good}, path: 'a' }]`));
    await hosting().write(
      'round',
      manifestOf('round'),
      `${module('[]')}\nendpoints[0] = endpoints;`,
    );
    const elsewhere = (name: string): string =>
      module(`[{ ...${good}, answers: { 200: { $ref: '${name}' } } }]`);
    await hosting().write('task', manifestOf('task'), elsewhere('Task'));
    await hosting().write('nothing', manifestOf('nothing'), elsewhere('NoSuch'));
    const { client, host } = await hosting().start();
    expect(host.described().map(({ id }) => id)).to.include.members(['good', 'task']);
    const status = await client.get('/ext/status');
    const reasons = ['none', 'wrong', 'round', 'nothing'].map((id) =>
      status.textAt(`extensions.${id}.info.reason`),
    );
    expect(reasons[0]).to.match(/invalid endpoints: endpoints must be array/);
    expect(reasons[1]).to.match(/endpoints\.0\.path/);
    expect(reasons[2]).to.match(/must be JSON/);
    expect(reasons[3]).to.match(/invalid endpoints: \$ref: the service has no schema NoSuch/);
  });
});
