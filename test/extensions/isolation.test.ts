import { expect } from 'chai';
import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import WebSocket from 'ws';
import { EventStream } from '../support/event-stream.ts';
import { eventually } from '../support/signals.ts';
import { manifestOf, reached, removed, useHosting } from './hosting.ts';
import { longVersions } from '../support/left-out.ts';

type Refused = { readonly code: string; readonly details: Record<string, unknown> };

/** Sends a path unchanged; other clients resolve `..` first. */
function rawGet(url: string, path: string): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, headers: { authorization: 'Bearer admin' } });
    sent.on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('an extension that exceeds its capabilities', () => {
  const hosting = useHosting();

  it('gains no capability by changing its context', async () => {
    const module = `export async function setup(context) {
      reached.refusals = [];
      const attempt = async (call) => {
        try { await call(); reached.refusals.push('done'); }
        catch (error) {
          reached.refusals.push(error.details?.required_capability ?? error.name);
          error.details?.granted_capabilities?.push('EVENTS_PUB', 'BACKGROUND_TASKS', 'TOOLS', 'EVENTS_SUB');
        }
      };
      for (let n = 0; n < 2; n += 1) {
        await attempt(() => context.events.publish('x', {}));
        await attempt(() => context.streams.append('x', 1, 'bad'));
        await attempt(() => context.background.startTask('x', () => {}));
        await attempt(() => context.toolRegistry.listTools());
      }
      await attempt(() => context.capabilities.push('EVENTS_PUB'));
      await attempt(() => { 'use strict'; context.info.id = 'observability'; });
      await attempt(() => Object.defineProperty(context, 'events', { value: 1 }));
      await attempt(() => Object.getOwnPropertyDescriptor(context, 'events').get.call({}));
      await attempt(() => context.websocket.call({}, '../../x', () => {}));
      reached.granted = context.capabilities;
    }`;
    await hosting().write('bad', manifestOf('bad'), module);
    await hosting().start();
    const each = ['EVENTS_SUB', 'EVENTS_SUB', 'BACKGROUND_TASKS', 'TOOLS'];
    expect(reached['refusals']).to.deep.equal([
      ...each,
      ...each,
      'TypeError',
      'TypeError',
      'TypeError',
      'EVENTS_SUB',
      'ExtensionError',
    ]);
    expect(reached['granted']).to.deep.equal(['ROUTES']);
  });

  it('cannot publish with EVENTS_SUB alone, nor subscribe with EVENTS_PUB alone', async () => {
    const module = (id: string) => `export async function setup({ events, streams }) {
      const codes = reached.${id} = {};
      const calls = {
        publish: () => events.publish('x', {}), append: () => streams.append('x', 1, '${id}'),
        subscribe: () => events.subscribe('x', () => {}),
        follow: () => streams.follow('x', { signal: AbortSignal.timeout(1) }),
        unsubscribe: () => events.unsubscribe('y'),
      };
      for (const [name, call] of Object.entries(calls)) {
        try { await call(); codes[name] = true; } catch (error) { codes[name] = error.code; }
      }
    }`;
    await hosting().write(
      'hears',
      manifestOf('hears', { capabilities: ['EVENTS_SUB'] }),
      module('hears'),
    );
    await hosting().write(
      'says',
      manifestOf('says', { capabilities: ['EVENTS_PUB'] }),
      module('says'),
    );
    await hosting().start();
    const no = 'forbidden';
    expect(reached['hears']).to.deep.equal({
      publish: no,
      append: no,
      subscribe: true,
      follow: true,
      unsubscribe: true,
    });
    expect(reached['says']).to.deep.equal({
      publish: true,
      append: true,
      subscribe: no,
      follow: no,
      unsubscribe: no,
    });
  });

  it('acts only for itself and the agents that it serves', async () => {
    const module = `export async function setup({ routes, toolRegistry, streams, callerOf }) {
      const attempt = async (call) => {
        try { await call(); return 'done'; } catch (error) { return error.code; }
      };
      const echo = (actAs) => attempt(() => toolRegistry.getTool('echo').call({}, { actAs }));
      const append = (source) => attempt(() => streams.append('x', 1, source));
      reached.alone = [await echo('admin'), await append('admin'), await echo('bad'), await append('bad'),
        await append(undefined), await append({ toString: () => 'bad' })];
      toolRegistry.registerTool('tool', async (_args, call) => [await echo(call.actAs), await echo('other')], {});
      routes.get('/', async (request, response) => {
        reached.after = () => echo('reader');
        response.json([await echo(callerOf(request).agentId), await append('reader'), await echo('admin')]);
      });
    }`;
    const capabilities = ['ROUTES', 'TOOLS', 'EVENTS_PUB'];
    await hosting().write('bad', manifestOf('bad', { capabilities }), module);
    const { client } = await hosting().start();
    const no = 'forbidden';
    expect(reached['alone']).to.deep.equal([no, no, 'done', 'done', no, no]);
    const served = await client.get('/ext/bad/', { token: 'reader' });
    expect(served.json).to.deep.equal(['done', 'done', no]);
    expect(await (reached['after'] as () => Promise<string>)()).to.equal(no);
    const step = hosting().tools.of('default').find('bad.tool')?.tool;
    const call = { actAs: 'somebody' } as Parameters<NonNullable<typeof step>['run']>[1];
    expect(await step?.run({}, call)).to.deep.equal(['done', no]);
  });

  it('calls only on behalf of requests that it received', async () => {
    const module = `export function setup({ routes, core }) {
      routes.get('/', async (request, response) => {
        const codes = [];
        for (const onBehalfOf of [request, { headers: { authorization: 'Bearer admin' }, ip: '::1' }, Object.create(request)]) {
          await core.request('GET', '/tasks', { onBehalfOf }).then(() => codes.push('done'), ({ code }) => codes.push(code));
        }
        response.json(codes);
      });
    }`;
    await hosting().write('bad', manifestOf('bad'), module);
    const { client } = await hosting().start();
    expect((await client.get('/ext/bad/')).json).to.deep.equal([
      'done',
      'bad_request',
      'bad_request',
    ]);
  });

  it('reads no setting or stream of an extension whose id starts with its own', async () => {
    const module = (id: string) => `export async function setup({ config, streams }) {
      (reached.config ??= {})['${id}'] = { ...config };
      reached['${id}'] = streams;
    }`;
    const capabilities = ['EVENTS_PUB', 'EVENTS_SUB'];
    for (const id of ['mail', 'mail-log']) {
      await hosting().write(id, manifestOf(id, { capabilities }), module(id));
    }
    await hosting().start({
      extensionSettings: {
        SVC_EXT_MAIL_HOST: 'h',
        SVC_EXT_MAIL_LOG_KEY: 'secret',
        SVC_EXT_MAIL_LOG: 'own',
      },
    });
    expect(reached['config']).to.deep.equal({
      mail: { host: 'h', log: 'own' },
      'mail-log': { key: 'secret' },
    });
    type Streams = {
      append(stream: string, data: unknown, source: string): Promise<unknown>;
      follow(stream: string, how: object): Promise<AsyncIterable<{ readonly data: unknown }>>;
    };
    const [one, other] = [reached['mail'] as Streams, reached['mail-log'] as Streams];
    await other.append('x', 'of the other', 'mail-log');
    await one.append('log-x', 'of the one', 'mail');
    const ended = new AbortController();
    for await (const { data } of await one.follow('log-x', {
      after: 'start',
      signal: ended.signal,
    })) {
      expect(data).to.equal('of the one');
      ended.abort();
    }
  });

  it('cannot have the name of an inherited property as its id', async () => {
    await hosting().write('folder', manifestOf('constructor'), 'export function setup() {}');
    const { client } = await hosting().start();
    const status = await client.get('/ext/status');
    expect(status.at('extensions.folder.state')).to.equal('failed');
    expect(status.at('extensions.folder.info.reason')).to.include('the id constructor is reserved');
  });
});

describe('a caller of an extension who exceeds their rights', () => {
  const hosting = useHosting();

  it('reaches no file outside the folder static', async () => {
    const manifest = manifestOf('plain', { capabilities: ['STATIC'] });
    await hosting().write('plain', manifest, 'export function setup() {}');
    const files = join(hosting().folder, 'plain/static');
    await mkdir(files);
    await writeFile(join(files, 'page.txt'), 'here');
    await writeFile(join(files, '.hidden'), 'not here');
    const { url } = await hosting().start();
    const statuses: Record<string, number> = {};
    for (const path of [
      'static/page.txt',
      'static/../module.mjs',
      'static/..%2fmodule.mjs',
      'static/%2e%2e/module.mjs',
      'static/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd',
      'static/..%5cmodule.mjs',
      'static//etc/passwd',
      'static/page.txt%00.html',
      'static/%',
      'static/.hidden',
      'STATIC/page.txt',
      'extension.json',
      '../plain/extension.json',
    ]) {
      statuses[path] = await rawGet(url, `/ext/plain/${path}`);
    }
    const { 'static/page.txt': there, ...others } = statuses;
    expect(there).to.equal(200);
    for (const [path, status] of Object.entries(others))
      expect(status, path).to.be.within(400, 404);
  });

  it('gets 412 for a failed precondition of a file, and no ranges', async () => {
    const manifest = manifestOf('plain', { capabilities: ['STATIC'] });
    await hosting().write('plain', manifest, 'export function setup() {}');
    const files = join(hosting().folder, 'plain/static');
    await mkdir(files);
    await writeFile(join(files, 'page.txt'), 'here');
    const { client } = await hosting().start();
    const get = (headers: Record<string, string>) =>
      client.get('/ext/plain/static/page.txt', { headers });
    for (const headers of [
      { 'if-match': '"x"' },
      { 'if-unmodified-since': 'Fri, 01 Jan 2000 00:00:00 GMT' },
    ]) {
      const refused = await get(headers);
      expect([refused.status, refused.at('error')]).to.deep.equal([412, 'precondition_failed']);
      expect(refused.header('cache-control')).to.equal('no-store');
    }
    for (const range of ['bytes=9999999-', 'bytes=5-2', 'bytes=1-2']) {
      const { status, text } = await get({ range });
      expect([status, text], range).to.deep.equal([200, 'here']);
    }
  });

  it('needs a token for a WebSocket, whatever its origin, and loses the WebSocket with the token', async () => {
    const module = `export function setup({ websocket }) {
      websocket('echo', (socket) => socket.onMessage((message) => socket.send(message)));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { url } = await hosting().start();
    const address = `${url.replace('http', 'ws')}/ext/plain/ws/echo`;
    const foreign = {
      origin: 'https://evil.example',
      headers: { cookie: 'token=admin; session=admin' },
    };
    for (const [protocols, options] of [
      [[], foreign],
      [['svc.token'], foreign],
      [['svc.token', 'nobody'], {}],
      [['other', 'svc.token', 'admin'], {}],
    ] as const) {
      const refused = new WebSocket(address, [...protocols], options);
      const message = await new Promise((resolve) =>
        refused.once('error', (error) => resolve(error.message)),
      );
      expect(message, protocols.join()).to.equal('Unexpected server response: 401');
    }
    const client = new WebSocket(address, ['svc.token', 'passing']);
    await new Promise((open) => client.once('open', open));
    expect(client.protocol).to.equal('svc.token');
    const closed = new Promise((resolve) => client.once('close', resolve));
    removed.add('passing');
    expect(await closed).to.equal(1008);
  });

  it('receives nothing without a valid token, even if the extension replaced methods', async () => {
    const module = `export function setup({ routes }) {
      routes.get('/own', (_request, response) => {
        response.write('own');
        response.end = () => { throw new TypeError('no end'); };
      });
      routes.get('/', (_request, response) => void response.write('plain'));
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { url } = await hosting().start();
    const own = await EventStream.open(`${url}/ext/plain/own`, 'passing');
    const other = await EventStream.open(`${url}/ext/plain/`, 'passing');
    removed.add('passing');
    await eventually(() => own.ended && other.ended);
  });

  // Thousands of connections take seconds on a busy machine.
  if (longVersions())
    it('can open a thousand WebSockets at most, and the service still works', async () => {
      const module = `export function setup({ routes, websocket }) {
        routes.get('/', (_request, response) => response.json({ fine: true }));
        websocket('wait', () => {});
      }`;
      await hosting().write('plain', manifestOf('plain'), module);
      const { client, url } = await hosting().start();
      const address = `${url.replace('http', 'ws')}/ext/plain/ws/wait`;
      const counts: Record<string, number> = {};
      const sockets = await Promise.all(
        Array.from({ length: 1_200 }, async () => {
          const socket = new WebSocket(address, ['svc.token', 'reader']);
          const outcome = await new Promise<string>((resolve) => {
            socket.once('open', () => resolve('open'));
            socket.once('error', ({ message }) => resolve(message));
          });
          counts[outcome] = (counts[outcome] ?? 0) + 1;
          return socket;
        }),
      );
      expect(counts).to.deep.equal({ open: 1_000, 'Unexpected server response: 503': 200 });
      expect((await client.get('/ext/plain/')).at('fine')).to.equal(true);
      for (const socket of sockets) socket.terminate();
    }).timeout(120_000);

  it('gets nothing by X-Scopes alone', async () => {
    const module = `export function setup({ routes, websocket }) {
      routes.get('/', (_request, response) => response.json({}));
      websocket('echo', () => {});
    }`;
    await hosting().write('plain', manifestOf('plain'), module);
    const { client } = await hosting().start({ requireScopes: true });
    const get = async (token: string | null, scopes: string, path = '') => {
      const headers = { 'x-scopes': scopes };
      return (await client.get(`/ext/plain/${path}`, { token, headers })).status;
    };
    expect(await get(null, 'admin')).to.equal(401);
    expect(await get(null, 'ext:plain:routes', 'health')).to.equal(401);
    expect(await get('nobody', 'ext:plain:routes')).to.equal(401);
    expect(await get('reader', 'admin ext:plain:routes')).to.equal(403);
    expect(await get('scoped', 'ext:other:routes')).to.equal(403);
    expect(await get('scoped', 'xext:plain:routes ext:plain:routesx')).to.equal(403);
    expect(await get('scoped', 'ext:plain:routes', 'health')).to.equal(200);
    const refused = await client.get('/ext/plain/', {
      token: 'scoped',
      headers: { 'x-scopes': '' },
    });
    expect((refused.json as unknown as Refused).details).to.deep.equal({
      required_scopes: ['ext:plain:routes'],
      granted_scopes: [],
    });
  });
});
