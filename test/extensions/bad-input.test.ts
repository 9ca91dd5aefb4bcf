import { expect } from 'chai';
import { errorTypeOf } from '../../extensions/host/extension.ts';
import type { Tool, ToolCall } from '../../scheduler/tools/tool.ts';
import { eventually } from '../support/signals.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

/** All capabilities. */
const everything = ['ROUTES', 'TOOLS', 'EVENTS_PUB', 'EVENTS_SUB', 'BACKGROUND_TASKS', 'STATIC'];

describe('a harmful extension', () => {
  const hosting = useHosting();

  /** Starts it beside a valid extension. @returns its status, once the valid one has responded */
  async function start(module: string, settings = {}, manifest: object = {}) {
    const fine = `export function setup({ routes }) {
      routes.get('/', (_request, response) => response.json({ fine: true }));
    }`;
    await hosting().write('fine', manifestOf('fine'), fine);
    await hosting().write(
      'bad',
      manifestOf('bad', { capabilities: everything, ...manifest }),
      module,
    );
    const { client } = await hosting().start(settings);
    const info = async (): Promise<Readonly<Record<string, unknown>>> => {
      expect((await client.get('/ext/fine/')).at('fine')).to.equal(true);
      const status = await client.get('/ext/status');
      expect(status.at('extensions.fine.state')).to.equal('loaded');
      const { state, info: about } = status.at('extensions.bad') as Record<string, unknown>;
      return { ...(about as object), state };
    };
    return { client, info };
  }

  it('fails if its module ends the process while loading', async () => {
    const { info } = await start('process.exit(3); export function setup() {}');
    const { state, reason } = await info();
    expect(state).to.equal('failed');
    expect(reason).to.include('process.exit was called');
  });

  for (const [what, thrown] of [
    ['nothing', 'undefined'],
    ['an object without a string form', 'Object.create(null)'],
    ['a symbol', 'Symbol("x")'],
    [
      'an error that throws when it is read',
      '{ get message() { throw 1; }, get name() { throw 2; } }',
    ],
    [
      'an error with a trap',
      'Object.defineProperty(new Error(), "message", { get() { throw 1; } })',
    ],
  ]) {
    it(`is reported if it throws ${what}, at setup and in a handler`, async () => {
      const module = `export function setup({ routes }) {
        routes.get('/throws', async () => { throw ${thrown}; });
        routes.get('/at-once', () => { throw ${thrown}; });
        if (globalThis.extensionTests.atSetup) throw ${thrown};
      }`;
      const { client, info } = await start(module);
      for (const path of ['throws', 'at-once']) {
        expect((await client.get(`/ext/bad/${path}`)).status).to.equal(500);
      }
      expect((await info())['state']).to.equal('loaded');
      await hosting().stop();
      reached['atSetup'] = true;
      const again = await start(module);
      const { state, reason } = await again.info();
      expect([state, typeof reason]).to.deep.equal(['failed', 'string']);
    });
  }

  it('can do nothing once its setup exceeds the time limit', async () => {
    const module = `export async function setup({ toolRegistry, events, background, streams, core }) {
      await new Promise((resolve) => (reached.proceed = resolve));
      const tried = {
        tool: () => toolRegistry.registerTool('late', () => 1, {}),
        publish: () => events.publish('late', {}),
        subscribe: () => events.subscribe('late', () => {}),
        background: () => background.startTask('late', () => {}),
        append: () => streams.append('late', 1, 'bad'),
        core: () => core.request('GET', '/tasks'),
      };
      reached.codes = {};
      for (const [name, call] of Object.entries(tried)) {
        try { await call(); reached.codes[name] = 'done'; }
        catch (error) { reached.codes[name] = error.code; }
      }
      reached.ended();
    }`;
    const ended = new Promise<void>((resolve) => (reached['ended'] = resolve));
    hosting().setupLimit = 3_000;
    const { info } = await start(module);
    (reached['proceed'] as () => void)();
    await ended;
    const refused = ['tool', 'publish', 'subscribe', 'background', 'append', 'core'];
    expect(reached['codes']).to.deep.equal(
      Object.fromEntries(refused.map((name) => [name, 'unavailable'])),
    );
    expect(hosting().tools.of('default').find('bad.late')?.tool).to.equal(undefined);
    expect((await info())['reason']).to.include('longer than 3 s');
  });

  it('cannot append a number that JSON or its readers would change', async () => {
    const module = `export async function setup({ streams }) {
      reached.refused = [];
      for (const data of [{ a: [NaN] }, -Infinity, { id: 2 ** 53 }, { id: 2 ** 53 - 1, x: 1e300 }]) {
        await streams.append('own', data, 'bad').then(
          () => reached.refused.push('none'),
          ({ code, details }) => reached.refused.push([code, details.field]),
        );
      }
    }`;
    const { info } = await start(module);
    expect((await info())['state']).to.equal('loaded');
    expect(reached['refused']).to.deep.equal([
      ['bad_request', 'data.a.0'],
      ['bad_request', 'data'],
      ['bad_request', 'data.id'],
      'none',
    ]);
  });

  it('is subject to the rate limit when it floods events', async () => {
    const module = `export function setup({ events, background }) {
      return background.startTask('flood', async (signal) => {
        reached.codes = [];
        while (!signal.aborted && reached.codes.length < 3) {
          await events.publish('flood', {}).catch(({ code }) => reached.codes.push(code));
        }
      });
    }`;
    const { info } = await start(module, { rateLimit: 20, rateLimitWindowSeconds: 86_400 });
    await eventually(() => void expect(reached['codes']).to.have.lengthOf(3));
    expect(new Set(reached['codes'] as string[])).to.deep.equal(new Set(['rate_limit_exceeded']));
    const { state, faults, last_fault } = await info();
    expect([state, faults]).to.deep.equal(['loaded', 1]);
    expect(last_fault).to.include('at most 20 events in 86400 s');
    expect(await hosting().published('flood')).to.equal(20);
  });

  it('has at most ten thousand timers, and none after it has ended', async () => {
    const module = `export function setup() {
      reached.ticks = 0;
      reached.made = 0;
      setInterval(() => (reached.ticks += 1), 1);
      for (let n = 0; n < 50; n += 1) clearTimeout(setTimeout(() => {}, 1e8));
      try { for (; reached.made < 20_000; reached.made += 1) setTimeout(() => {}, 1e8); }
      catch (error) { reached.refused = error.message; }
    }`;
    const { info } = await start(module);
    expect(reached['made']).to.equal(9_999);
    expect(reached['refused']).to.include('over 10000 timers');
    const { state, last_fault } = await info();
    expect([state, last_fault]).to.deep.equal([
      'loaded',
      'it has over 10000 timers: Error: more are rejected',
    ]);
    await eventually(() => void expect(reached['ticks']).to.be.greaterThan(0));
    await hosting().stop();
    const ticks = reached['ticks'];
    for (let n = 0; n < 5; n += 1) await hosting().publish('later', {});
    expect(reached['ticks']).to.equal(ticks);
    expect(setTimeout.name).to.equal('setTimeout');
  });

  it('has at most a thousand connections', async () => {
    const module = `import { connect } from 'node:net';
    export function setup({ routes }) {
      routes.post('/open', async (request, response) => {
        const results = await Promise.all(Array.from({ length: 10_000 }, () =>
          new Promise((resolve) => {
            const socket = connect(request.socket.localPort, '127.0.0.1');
            socket.once('connect', () => resolve('open')).once('error', ({ message }) => resolve(message));
            socket.on('error', () => {});
          })));
        const counts = {};
        for (const each of results) counts[each] = (counts[each] ?? 0) + 1;
        response.json(counts);
      });
    }`;
    const { client, info } = await start(module);
    const opened = await client.post('/ext/bad/open');
    expect(opened.json).to.deep.equal({
      open: 1000,
      'the extension bad has over 1000 connections': 9000,
    });
    const { state, faults, last_fault } = await info();
    expect([state, faults]).to.deep.equal(['loaded', 1]);
    expect(last_fault).to.include('over 1000 connections');
  });

  const schemas: readonly (readonly [what: string, schema: string])[] = [
    ['has an unknown type', "{ type: 'colour' }"],
    ['contains itself', '(() => { const a = {}; a.a = a; return a; })()'],
    ['is a number', '5'],
    ['is a list', '[]'],
    ['refers to another document', "{ $ref: 'https://example.com/schema' }"],
    ['has a broken pattern', "{ properties: { a: { pattern: '(' } } }"],
    ['throws when it is read', '{ toJSON() { throw 1; } }'],
  ];
  for (const [what, schema] of schemas) {
    it(`fails with a tool whose schema ${what}`, async () => {
      const module = `export function setup({ toolRegistry }) {
        toolRegistry.registerTool('tool', () => 1, ${schema});
      }`;
      const { info } = await start(module);
      expect((await info())['state']).to.equal('failed');
      expect(hosting().tools.of('default').find('bad.tool')?.tool).to.equal(undefined);
    });
  }

  it('fails only the step if a result is not JSON, and cannot change arguments or results later', async () => {
    const module = `export function setup({ toolRegistry }) {
      const results = {
        circle: () => { const a = {}; a.a = a; return a; }, bigint: () => 1n,
        trap: () => new Proxy({}, { ownKeys() { throw 1; } }), toJSON: () => ({ toJSON() { throw {}; } }),
        nothing: () => undefined, func: () => () => 1, symbol: () => Symbol('s'), unsaid: () => ({ toJSON() {} }),
        sparse: () => { const a = []; a[4e9] = 1; return a; }, infinite: () => ({ a: [Infinity] }), nan: () => NaN,
        later: () => (reached.later = { a: 1 }), args: (args) => { args.list.push(2); return args; },
      };
      for (const [name, result] of Object.entries(results)) {
        toolRegistry.registerTool(name, result, { type: 'object' });
      }
    }`;
    await start(module);
    const args = { list: [1] };
    const run = async (name: string): Promise<unknown> => {
      const call = { actAs: 'somebody' } as Parameters<Tool['run']>[1];
      try {
        return await hosting().tools.of('default').find(`bad.${name}`)?.tool?.run(args, call);
      } catch (error) {
        expect(error).to.include({ name: 'ToolError', retryable: false });
        return 'refused';
      }
    };
    const none = [
      'circle',
      'bigint',
      'trap',
      'toJSON',
      'func',
      'symbol',
      'unsaid',
      'infinite',
      'nan',
    ];
    for (const name of none) {
      expect(await run(name), name).to.equal('refused');
    }
    expect(await run('nothing')).to.equal(null);
    expect(await run('sparse')).to.deep.equal({ truncated: true, size_bytes: 8_000_000_002 });
    const later = await run('later');
    (reached['later'] as { a: unknown }).a = 2;
    expect(later).to.deep.equal({ a: 1 });
    expect(await run('args')).to.deep.equal({ list: [1, 2] });
    expect(args).to.deep.equal({ list: [1] });
  });

  it('fails only the step, whatever a tool throws', async () => {
    const module = `export function setup({ toolRegistry }) {
      const trap = (name, error = new Error('m')) =>
        Object.defineProperty(error, name, { get() { throw trap('message'); } });
      const revoked = Proxy.revocable(new Error('m'), {});
      revoked.revoke();
      const all = new Proxy({}, { get: () => () => { throw revoked.proxy; } });
      reached.thrown = {
        ...Object.fromEntries(['message', 'name', 'stack', 'cause', 'retryable'].map((name) => [name, trap(name)])),
        number: Object.assign(new Error(), { message: 42, retryable: false }),
        object: Object.assign(new Error(), { message: {} }),
        undefined: Object.assign(new Error(), { message: undefined }),
        symbol: Object.assign(new Error(), { message: Symbol('m') }),
        none: null, function: () => 1, bare: Object.create(null),
        revoked: revoked.proxy, proxy: new Proxy(new Error('m'), all),
        parent: Object.create(new Proxy(Error.prototype, all)),
      };
      for (const [name, thrown] of Object.entries(reached.thrown)) {
        toolRegistry.registerTool(name, () => { throw thrown; }, { type: 'object' });
      }
    }`;
    const { client, info } = await start(module);
    for (const name of Object.keys(reached['thrown'] as object)) {
      const called = { tool: `bad.${name}`, parameters: {} };
      const { status, text, json } = await client.post('/ext/mcp_http/invoke', called);
      expect(status, `${name}: ${text}`).to.equal(200);
      expect(json, name).to.include({ success: false });
      const run = hosting()
        .tools.of('default')
        .find(`bad.${name}`)
        ?.tool?.run({}, { actAs: 'somebody' } as ToolCall);
      const thrown = await Promise.resolve(run).catch((error: unknown) => error);
      const said = `${String((thrown as Error | null)?.message)} of ${errorTypeOf(thrown)}`;
      expect(said, name).to.be.a('string');
      if (name === 'number') expect(thrown).to.include({ message: 'Error: 42', retryable: false });
    }
    expect((await info())['faults']).to.equal(undefined);
  });

  it('cannot change data after a tool has logged it', async () => {
    const module = `export function setup({ toolRegistry }) {
      toolRegistry.registerTool('log', (_args, { log }) => {
        const data = { a: 1 };
        log('info', 'm', data);
        data.a = 1n;
        data.self = data;
        log('warn', 'm', data);
        log(undefined, 'm');
        log('x'.repeat(600_000), 'm', undefined);
        log('error', 42, null);
        log('debug', Object.create(null), () => 1);
        return 'done';
      }, { type: 'object' });
    }`;
    await start(module);
    const lines: unknown[] = [];
    const log: ToolCall['log'] = (...said) => void lines.push(said);
    const call = { actAs: 'somebody', log } as ToolCall;
    expect(await hosting().tools.of('default').find('bad.log')?.tool?.run({}, call)).to.equal(
      'done',
    );
    expect(lines).to.deep.equal([
      ['info', 'm', { a: 1 }],
      ['warn', 'm', 'not JSON: it is nested deeper than 500 levels, or contains itself'],
      ['info', 'm'],
      ['info', 'm'],
      ['error', '42', null],
      ['debug', 'a value that cannot be shown', 'not JSON: a function cannot be represented'],
    ]);
  });

  it('cannot change a schema after registration', async () => {
    const module = `export function setup({ toolRegistry }) {
      const schema = { type: 'object', required: ['a'] };
      toolRegistry.registerTool('tool', () => 1, schema);
      schema.toJSON = () => { throw new Error('in a list of tools'); };
      schema.required.length = 0;
      reached.views = toolRegistry.listTools();
      try { toolRegistry.getTool('echo').schema.type = 'number'; } catch (error) { reached.refused = error.name; }
    }`;
    await start(module);
    expect(JSON.stringify(hosting().tools.of('default').schemaOf('bad.tool'))).to.equal(
      '{"type":"object","required":["a"]}',
    );
    expect(hosting().tools.of('default').schemaOf('echo')).to.not.have.property('type', 'number');
    expect(reached['refused']).to.equal('TypeError');
  });
});
