import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useHosting } from './hosting.ts';

describe('an npm plugin', () => {
  const hosting = useHosting();
  const reached = globalThis as { pluginsThatRan?: string[] };

  beforeEach(() => {
    reached.pluginsThatRan = [];
  });

  after(() => {
    delete reached.pluginsThatRan;
  });

  const root = (): string => join(hosting().folder, '..');

  /** Installs a package with one plugin. @param claimed the name in its package.json */
  function install(name: string, id: string, claimed = name): void {
    const folder = join(root(), 'node_modules', name);
    mkdirSync(folder, { recursive: true });
    const about = { name: claimed, version: '1.0.0', svc: { plugins: { [id]: './main.mjs' } } };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(about));
    const ran = `globalThis.pluginsThatRan.push(${JSON.stringify(name)});`;
    writeFileSync(join(folder, 'main.mjs'), `${ran}\nexport function setup() {}`);
  }

  /** Starts a host that allows these packages. Returns the state and reason of each plugin. */
  async function started(allowedPlugins: readonly string[]) {
    const settings = { extensionPaths: [], allowedPlugins };
    const { client } = await hosting().start(settings, [root()]);
    const status = await client.get('/ext/status');
    return (id: string) => ({
      state: status.at(`extensions.${id}.state`),
      reason: status.at(`extensions.${id}.info.reason`),
    });
  }

  it('of a package that is not allowed is listed with the remedy, and none of its code runs', async () => {
    install('svc-mailer', 'mailer');
    install('@example/prober', 'prober');
    const of = await started(['@example/prober']);
    expect(of('prober').state).to.equal('loaded');
    expect(of('mailer')).to.deep.equal({
      state: 'failed',
      reason:
        'it is a plugin of the npm package svc-mailer, ' +
        'which SVC_EXT_PLUGINS does not name; add it there to load its code',
    });
    expect(reached.pluginsThatRan).to.deep.equal(['@example/prober']);
  });

  it('is not allowed by the name that its package.json claims', async () => {
    install('svc-impostor', 'mailer', 'svc-mailer');
    const of = await started(['svc-mailer']);
    expect(of('mailer').state).to.equal('failed');
    expect(reached.pluginsThatRan).to.deep.equal([]);
  });

  it('cannot take the id of an allowed plugin', async () => {
    install('a-first', 'mailer');
    install('svc-mailer', 'mailer');
    const of = await started(['svc-mailer']);
    expect(of('mailer').state).to.equal('loaded');
    expect(of('mailer@entry_point').state).to.equal('failed');
    expect(reached.pluginsThatRan).to.deep.equal(['svc-mailer']);
  });
});
