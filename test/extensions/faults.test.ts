import { expect } from 'chai';
import { eventually } from '../support/signals.ts';
import { settle } from '../support/virtual-clock.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

describe('a faulty extension', () => {
  const hosting = useHosting();
  const fine = `export function setup({ routes }) {
    routes.get('/', (_request, response) => response.json({ fine: true }));
  }`;

  /** The status of one extension, after checking that another works. */
  async function statusOf(key: string): Promise<Readonly<Record<string, unknown>>> {
    await hosting().write('fine', manifestOf('fine'), fine);
    const { client } = await hosting().start();
    const other = await client.get('/ext/fine/');
    expect(other.at('fine'), other.text).to.equal(true);
    const status = await client.get('/ext/status');
    expect(status.at('extensions.fine.state')).to.equal('loaded');
    return status.at(`extensions.${key}`) as Readonly<Record<string, unknown>>;
  }

  const at = (status: Readonly<Record<string, unknown>>): [unknown, string] => [
    status['state'],
    String((status['info'] as Record<string, unknown>)['reason']),
  ];

  const broken: readonly (readonly [what: string, manifest: object | string, says: RegExp])[] = [
    ['that is not JSON', '{"id": ', /^extension\.json is not valid JSON/],
    ['without an id', { name: 'x', version: '1', module: 'module.mjs' }, /id is missing/],
    ['with an unknown field', manifestOf('bad', { colour: 'red' }), /colour is not known/],
    [
      'with an unknown capability',
      manifestOf('bad', { capabilities: ['ROOT'] }),
      /capabilities\.0/,
    ],
    ['with a reserved id', manifestOf('status'), /the id status is reserved/],
    [
      'with a module outside its folder',
      manifestOf('bad', { module: '../x.mjs' }),
      /inside the folder/,
    ],
  ];
  for (const [what, manifest, says] of broken) {
    it(`with a manifest ${what} is listed by the name of its folder`, async () => {
      await hosting().write('folder', manifest, fine);
      const [state, reason] = at(await statusOf('folder'));
      expect(state).to.equal('failed');
      expect(reason).to.match(says);
      expect(reason).not.to.include(hosting().folder);
    });
  }

  it('is not caused by a manifest that starts with a byte order mark', async () => {
    const manifest = `\uFEFF${JSON.stringify(manifestOf('marked'))}`;
    await hosting().write('marked', manifest, fine);
    expect((await statusOf('marked'))['state']).to.equal('loaded');
  });

  it('is listed beside the extension that already uses its id', async () => {
    await hosting().write('again', manifestOf('fine'), fine);
    const [state, reason] = at(await statusOf('fine@env_dir'));
    expect([state, reason]).to.deep.equal([
      'failed',
      'the id fine is already used by an extension from env_dir',
    ]);
  });

  const modules: readonly (readonly [what: string, module: string, says: RegExp])[] = [
    ['whose module throws', "throw new TypeError('at once');", /^TypeError: at once$/],
    ['whose module does not parse', 'export {{', /^SyntaxError/],
    ['without a setup', 'export const a = 1;', /must export a function setup/],
    ['whose setup throws', "export function setup() { throw new Error('no'); }", /^Error: no$/],
    [
      'whose setup throws a long message, which is cut between characters',
      "export function setup() { throw new Error('😀'.repeat(200)); }",
      /^Error: 😀{146}$/u,
    ],
    [
      'whose setup never ends',
      'export const setup = () => new Promise(() => {});',
      /longer than 3 s/,
    ],
    ['that exits', 'export function setup() { process.exit(3); }', /process\.exit was called/],
    [
      'that exits by an import',
      "import { exit } from 'node:process'; export const setup = async () => { await 1; exit(); };",
      /process\.exit was called/,
    ],
    [
      'that uses a capability that was not granted',
      "export function setup({ background }) { background.startTask('x', () => {}); }",
      /requires the capability BACKGROUND_TASKS/,
    ],
    [
      'that registers a bad schema',
      "export function setup({ toolRegistry }) { toolRegistry.registerTool('x', () => 1, { type: 5 }); }",
      /schema/,
    ],
  ];
  for (const [what, module, says] of modules) {
    it(`${what} fails, and affects no other extension`, async () => {
      await hosting().write(
        'bad',
        manifestOf('bad', { capabilities: ['ROUTES', 'TOOLS'] }),
        module,
      );
      if (module.includes('new Promise(() => {})')) hosting().setupLimit = 3_000;
      const [state, reason] = at(await statusOf('bad'));
      expect(state).to.equal('failed');
      expect(reason).to.match(says);
      expect(reason).not.to.include(hosting().folder);
    });
  }

  it('causes no warning if many extensions are set up at once', async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', note);
    try {
      const slow = 'export const setup = () => new Promise((done) => setTimeout(done, 50));';
      for (let n = 0; n < 31; n += 1) await hosting().write(`e${n}`, manifestOf(`e${n}`), slow);
      expect((await statusOf('e0'))['state']).to.equal('loaded');
      // A warning is reported in a later turn of the event loop.
      await settle();
    } finally {
      process.off('warning', note);
    }
    expect(warnings).to.deep.equal([]);
  });

  it('responds with 503, and an unknown one with 404', async () => {
    await hosting().write('bad', manifestOf('bad'), 'throw new Error();');
    const { client } = await hosting().start();
    const failed = await client.get('/ext/bad/x');
    expect([failed.status, failed.at('details')]).to.deep.equal([503, { extension_id: 'bad' }]);
    const unknown = await client.get('/ext/nobody/x');
    expect([unknown.status, unknown.at('error'), unknown.at('details')]).to.deep.equal([
      404,
      'not_found',
      { extension_id: 'nobody' },
    ]);
  });

  it('loses everything that it registered', async () => {
    const module = `export function setup({ toolRegistry }) {
      toolRegistry.registerTool('half', () => 1, { type: 'object' });
      throw new Error('too late');
    }`;
    await hosting().write('bad', manifestOf('bad', { capabilities: ['TOOLS'] }), module);
    await hosting().start();
    expect(hosting().tools.of('default').find('bad.half')?.tool).to.equal(undefined);
  });

  it('is counted with its id and the error type when a handler throws', async () => {
    const module = `export function setup({ routes }) {
      routes.get('/sync', () => { throw new RangeError('secret of the inside'); });
      routes.get('/async', async () => { await null; throw new RangeError('x'); });
    }`;
    await hosting().write('bad', manifestOf('bad'), module);
    const { client } = await hosting().start();
    for (const path of ['sync', 'async']) {
      const answer = await client.get(`/ext/bad/${path}`);
      expect([answer.status, answer.at('error')]).to.deep.equal([500, 'internal_error']);
      expect(answer.at('details.extension_id')).to.equal('bad');
      expect(answer.at('details.error_type')).to.equal('RangeError');
    }
    const status = await client.get('/ext/status');
    expect(status.at('extensions.bad.metrics.errors_total')).to.equal(2);
    expect(await hosting().metricsText()).to.include(
      'extension_errors_total{extension="bad",endpoint="/sync",error_type="RangeError"} 1',
    );
  });

  it('responds with 500 if a handler throws a value that Express takes for a call of next', async () => {
    const module = `export function setup({ routes }) {
      const thrown = { undefined, null: null, zero: 0, empty: '', route: 'route', router: 'router' };
      const add = (to, path, thrown) => {
        to.get(path + '/sync', () => { throw thrown; });
        to.get(path + '/async', async () => { await null; throw thrown; });
        to.get(path + '/handed-on', (_request, _response, next) => next('route'));
      };
      const all = (to) => {
        for (const [name, value] of Object.entries(thrown)) add(to, '/' + name, value);
      };
      all(routes);
      routes.get('/undefined/handed-on', (_request, response) => response.json({ fine: true }));
      routes.use('/middleware', () => { throw undefined; });
      routes.route('/of-a-route').get(() => { throw 'router'; });
      routes.all('/pattern/{:id}', [() => { throw 0; }]);
      routes.get('/error', () => { throw new Error('m'); });
      routes.use('/error', (_error, _request, _response, _next) => { throw null; });
    }`;
    await hosting().write('bad', manifestOf('bad'), module);
    const { client } = await hosting().start();
    const names = ['undefined', 'null', 'zero', 'empty', 'route', 'router'];
    const paths = [
      ...names.flatMap((name) => [`${name}/sync`, `${name}/async`]),
      ...['middleware', 'of-a-route', 'pattern/1', 'error'],
    ];
    for (const path of paths) {
      const answer = await client.get(`/ext/bad/${path}`);
      expect([answer.status, answer.at('error')], path).to.deep.equal([500, 'internal_error']);
    }
    expect((await client.get('/ext/bad/undefined/handed-on')).at('fine')).to.equal(true);
    expect((await client.get('/ext/bad/null/handed-on')).status).to.equal(404);
  });

  it('fails when a handler calls process.exit', async () => {
    const module = `export function setup({ routes }) {
      routes.get('/', () => process.exit(1));
    }`;
    await hosting().write('bad', manifestOf('bad'), module);
    const { client } = await hosting().start();
    expect((await client.get('/ext/bad/')).status).to.equal(500);
    expect((await client.get('/ext/bad/')).status).to.equal(503);
  });

  it('restarts a background task that throws, and shows the error', async () => {
    const module = `export async function setup({ background }) {
      reached.list = () => background.listTasks();
      await background.startTask('shaky', async () => { throw new Error('no luck'); });
    }`;
    const manifest = manifestOf('bad', { capabilities: ['BACKGROUND_TASKS'] });
    await hosting().write('bad', manifest, module);
    const { client } = await hosting().start();
    await eventually(async () => {
      const status = await client.get('/ext/status');
      expect(status.at('extensions.bad.info.last_fault')).to.equal(
        'background task shaky: Error: no luck',
      );
      expect(status.at('extensions.bad.state')).to.equal('loaded');
      const [task] = (reached['list'] as () => { restarts: number }[])();
      expect(task?.restarts).to.be.greaterThan(0);
    });
  });
});
