import { expect } from 'chai';
import type { Secret } from '../../../domain/secrets/secret-source.ts';
import { createHttpTool } from '../../../scheduler/tools/http-request.ts';
import { serve, type Answer, type Seen } from '../tools/http-harness.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { execute, type Given, type Went } from '../pipeline/pipeline-execution-harness.ts';

const VALUE = 'open-sesame-17';

/** Each row is an attack by a task's author, or by a server that the task calls. */
describe('a secret of a task cannot be taken', () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  leavesNothingOpen();

  const server = async (answer: Answer = (_seen, response) => response.end('ok')) => {
    const served = await serve(answer);
    closing.push(
      () =>
        new Promise((resolve) => {
          served.server.close(resolve);
          served.server.closeAllConnections();
        }),
    );
    return { ...served, host: new URL(served.origin).host };
  };

  const run = (
    pipeline: readonly object[],
    limits: Partial<Secret>,
    more: Partial<Given> = {},
  ): Promise<Went> => {
    const { tool, close } = createHttpTool({ allowPrivate: true });
    closing.push(close);
    const tools = { 'http.request': tool, ...more.tools };
    return execute({ pipeline, secrets: { X: VALUE }, secretLimits: limits, ...more, tools });
  };
  const send = (args: object, limits: Partial<Secret>) =>
    run([{ uses: 'http.request', with: args }], limits);
  const errorOf = ({ result }: Went): string => (result.kind === 'failed' ? result.error : 'none');
  const carries = (seen: readonly Seen[]): boolean => JSON.stringify(seen).includes(VALUE);
  const headers = { authorization: 'Bearer ${secrets.X}' };

  it('except by its own hosts', async () => {
    const { origin, host, seen } = await server();
    const went = await send({ url: origin, headers }, { allowHosts: [host] });
    expect(went.result.kind).to.equal('succeeded');
    expect(seen[0]?.headers.authorization).to.equal(`Bearer ${VALUE}`);
  });

  it('by another host, or another port of its host', async () => {
    const { origin, host, seen } = await server();
    for (const allowHosts of [[], ['api.example.com'], ['127.0.0.1:1'], [`localhost:${host}`]]) {
      for (const args of [
        { url: origin, headers },
        { url: `${origin}/\${secrets.X}` },
        { url: origin, query: { a: '${secrets.X}' } },
        { url: origin, method: 'POST', body: { a: ['${secrets.X}'] } },
        { url: origin.replace('//', '//user:${secrets.X}@') },
      ]) {
        const went = await send(args, { allowHosts });
        expect(errorOf(went)).to.match(/^the secret X may not be sent to/);
        expect(went.result).to.include({ kind: 'failed', retryable: false });
        expect(JSON.stringify(went)).not.to.include(VALUE);
      }
    }
    expect(seen).to.deep.equal([]);
  });

  it('by naming an allowed host in the header host', async () => {
    const { origin, host, seen } = await server();
    const args = { url: origin, headers: { ...headers, host: 'evil.example' } };
    const went = await send(args, { allowHosts: [host] });
    expect(errorOf(went)).to.include('the header host must be left out');
    expect(seen).to.deep.equal([]);
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`by a redirect (${status}) to another host, even without the header`, async () => {
      const thief = await server();
      const { origin, host, seen } = await server(
        ({ headers: { authorization = '' } }, response) => {
          const location = `${thief.origin}/?${authorization.replace(' ', '')}`;
          response.writeHead(status, { location }).end();
        },
      );
      const args = { url: origin, method: 'POST', headers, body: 'a' };
      const went = await send(args, { allowHosts: [host] });
      expect(errorOf(went)).to.match(/^the secret X may not be sent to 127\.0\.0\.1:\d+: /);
      expect(carries(seen)).to.equal(true);
      expect(thief.seen).to.deep.equal([]);
    });
  }

  it('by an open redirect of an allowed host, chosen by the author', async () => {
    const thief = await server();
    const { origin, host } = await server(({ url }, response) => {
      const location = new URL(url, 'http://a').searchParams.get('to') ?? '';
      response.writeHead(302, { location }).end();
    });
    const query = { to: `${thief.origin}/?\${secrets.X}` };
    await send({ url: origin, query }, { allowHosts: [host] });
    expect(thief.seen).to.deep.equal([]);
  });

  it('but may follow a redirect within its hosts', async () => {
    const { origin, host, seen } = await server(({ url }, response) => {
      if (url === '/a') response.writeHead(302, { location: '/b' });
      response.end('ok');
    });
    const went = await send({ url: `${origin}/a`, headers }, { allowHosts: [host] });
    expect(went.result.kind).to.equal('succeeded');
    expect(seen[1]?.headers.authorization).to.equal(`Bearer ${VALUE}`);
  });

  it('by adding a secret that does not exist', async () => {
    const { origin, host, seen } = await server();
    const args = { url: origin, headers: { a: '${secrets.X}', b: '${secrets.Y}' } };
    const went = await run(
      [{ uses: 'http.request', with: args }],
      { allowHosts: [host] },
      {
        secrets: { X: VALUE },
      },
    );
    expect(errorOf(went)).to.equal('there is no secret Y in the namespace default');
    expect(seen).to.deep.equal([]);
  });

  it('by a response that repeats it, in a result, an error or a later step', async () => {
    const { origin, host } = await server(({ headers: { authorization }, url }, response) => {
      response.statusCode = url === '/bad' ? 400 : 200;
      response.end(JSON.stringify({ said: authorization, url }));
    });
    const good = { id: 'good', uses: 'http.request', with: { url: origin, headers } };
    const bad = {
      ...good,
      id: 'bad',
      with: { url: `${origin}/bad`, headers },
      on_error: 'continue',
    };
    const log = { uses: 'log', with: { message: '${steps.good.body} ${steps.bad.error}' } };
    const echo = { uses: 'echo', with: '${steps.good}' };
    const went = await run([good, bad, log, echo], { allowHosts: [host] });
    expect(JSON.stringify(went)).to.include('***').and.not.to.include(VALUE);
  });

  for (const [what, step] of [
    [
      'an expression',
      { uses: 'http.request', with: { url: 'http://a', body: '${reverse(secrets.X)}' } },
    ],
    ['an expression of the scope', { uses: 'echo', with: '${map(&secrets.X, [@])}' }],
    ['a condition', { uses: 'echo', if: "starts_with(secrets.X, 'open')" }],
    ['the items of a step', { uses: 'echo', for_each: ['${secrets.X}'], with: '${item}' }],
    ['a log line', { uses: 'log', with: { message: '${secrets.X}' } }],
    ['a result', { uses: 'echo', with: '${secrets.X}' }],
    [
      'an expression of a transform',
      { uses: 'transform', with: { expression: '`"${secrets.X}"`', input: 1 } },
    ],
  ] as const) {
    it(`by ${what}, in a task from before the rule`, async () => {
      const went = await run([{ id: 'a', ...step }], { allowHosts: ['*'] });
      expect(errorOf(went)).to.include('a secret is used whole');
      expect(JSON.stringify(went)).not.to.include(VALUE);
    });
  }

  it('by a tool that marks no argument, or only another one', async () => {
    const calls: unknown[] = [];
    const schema = { properties: { key: { 'x-secret': true }, note: {} } };
    const mail = { description: '', schema, run: (args: unknown) => void calls.push(args) };
    const use = (args: object, allowHosts: readonly string[]) =>
      run([{ uses: 'mail', with: args }], { allowHosts }, { tools: { mail } });
    const refused = await use({ note: '${secrets.X}' }, ['*']);
    expect(errorOf(refused)).to.include('cannot be used in this argument of mail');
    const limited = await use({ key: '${secrets.X}' }, ['a.example']);
    expect(errorOf(limited)).to.include('does not see where that tool sends it');
    expect(calls).to.deep.equal([]);
    await use({ key: 'k ${secrets.X}' }, ['*']);
    expect(calls).to.deep.equal([{ key: `k ${VALUE}` }]);
  });

  it('by a worker, whose job would record it', async () => {
    const schema = { 'x-secret': true };
    const job = { description: '', schema, isExternal: true, run: () => null };
    const went = await run(
      [{ uses: 'job', with: '${secrets.X}' }],
      { allowHosts: ['*'] },
      {
        tools: { job },
      },
    );
    expect(errorOf(went)).to.include('let the worker read the secret itself');
  });

  it('by a task that is not among its own', async () => {
    const { origin, seen } = await server();
    const limits = { allowHosts: ['*'], allowTasks: ['task-2'] };
    expect(errorOf(await send({ url: origin, headers }, limits))).to.equal(
      'the task task-1 may not use the secret X: it is not in its allow_tasks',
    );
    expect(seen).to.deep.equal([]);
    const own = await send({ url: origin, headers }, { ...limits, allowTasks: ['task-1'] });
    expect(own.result.kind).to.equal('succeeded');
  });
});
