import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { addCutStream, addRuns, addTask, manifestIn, onLog } from '../../app/archive/small-log.ts';
import { svc } from '../../app/cli/command-line.ts';
import { projectRoot } from '../../support/project-root.ts';
import { buildService } from '../../support/service-process.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { damagedFiles } from '../faults/damaged-files.ts';
import { Ledger } from '../ledger.ts';
import { longVersions } from '../../support/left-out.ts';

const AT = Date.parse('2026-05-01T10:00:00Z');
/** Each run has three events, so that an import needs more than one append. */
const RUNS = 350;

/** `SVC_TEST_LONG=1`: kills at each stage, not just during a write and before the last step. */
const long = longVersions();
const some = (all: readonly string[], short: readonly string[]): readonly string[] =>
  long ? all : short;

describe('a command on a log that is killed', function () {
  this.timeout(120_000);
  let directory: TemporaryDirectory;
  let server: EventStoreDbServer | undefined;
  let content = '';
  let named = 0;
  const path = (name: string): string => join(directory.path, name);
  /** An unused name. */
  const fresh = (name: string): string => path(`${name}-${(named += 1)}`);

  before(async () => {
    buildService();
    directory = await makeTemporaryDirectory();
    await onLog(path('here'), async (store) => {
      const task = await addTask(store, AT);
      await addRuns(store, task, AT, RUNS);
      await addCutStream(store, 'demo-cut', 7, 4);
    });
    await finishes({ SVC_DATA_DIR: path('here') }, 'export', path('export'));
    await finishes({ SVC_DATA_DIR: path('here') }, 'backup', path('backup'));
    content = manifestIn(path('export')).content_sha256;
  });
  afterEach(() => {
    server?.stop();
    server = undefined;
  });
  after(() => directory.remove());

  type Env = Readonly<Record<string, string>>;

  /** Runs a command in a process of its own that dies at a given output. */
  async function killed(at: string, env: Env, ...words: string[]): Promise<void> {
    const killer = join(projectRoot, 'test/process/killing/kill-at-output.mjs');
    const args = ['--import', killer, join(projectRoot, 'dist/app/cli.js'), ...words];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, args, {
      cwd: projectRoot,
      env: { PATH, SVC_TEST_KILL_AT: at, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => (output += part));
    const [, signal] = (await once(child, 'close')) as [number | null, string | null];
    expect(signal, `${at}: ${output}`).to.equal('SIGKILL');
  }

  async function finishes(env: Env, ...words: string[]): Promise<void> {
    const called = await svc(words, { env });
    expect(called.code, called.err).to.equal(0);
  }

  /** The log of a folder, as an export. */
  async function contentOf(env: Env): Promise<string> {
    const out = fresh('look');
    await finishes(env, 'export', out);
    return manifestIn(out).content_sha256;
  }

  const leftIn = (name: string): readonly string[] =>
    readdirSync(directory.path).filter((each) => each.startsWith(`${name}.unfinished`));

  for (const at of some(['exporting', 'events', 'closing'], ['events', 'closing'])) {
    it(`writes no export when it dies at "${at}", and a complete one afterwards`, async () => {
      const env = { SVC_DATA_DIR: path('here') };
      const out = fresh('out');
      await killed(at, env, 'export', out);
      expect(existsSync(out)).to.equal(false);
      const name = out.slice(directory.path.length + 1);
      expect(leftIn(name)).to.have.lengthOf(1);
      await finishes(env, 'export', out);
      expect(leftIn(name)).to.deep.equal([]);
      expect(manifestIn(out).content_sha256).to.equal(content);
    });
  }

  for (const at of some(['copying', '%', 'checking', 'closing'], ['%', 'closing'])) {
    it(`writes no backup when it dies at "${at}", and a complete one afterwards`, async () => {
      const env = { SVC_DATA_DIR: path('here') };
      const out = fresh('out');
      await killed(at, env, 'backup', out);
      expect(existsSync(out)).to.equal(false);
      await finishes(env, 'backup', out);
      expect(leftIn(out.slice(directory.path.length + 1))).to.deep.equal([]);
      const there = { SVC_DATA_DIR: fresh('there') };
      await finishes(there, 'restore', out);
    });
  }

  it('writes no encrypted backup when it dies at "encrypting", and removes the copy later', async () => {
    const env = { SVC_DATA_DIR: path('here') };
    const out = fresh('out');
    const recipient = await identityToRecipient(await generateX25519Identity());
    const words = ['backup', out, '--recipient', recipient];
    const copies = (): readonly string[] =>
      readdirSync(path('here')).filter((name) => name.startsWith('.backing-up'));
    await killed('encrypting', env, ...words);
    expect(existsSync(out)).to.equal(false);
    expect(copies()).to.have.lengthOf(1);
    await finishes(env, ...words);
    expect(copies()).to.deep.equal([]);
    expect(readdirSync(out)).to.have.members(['events.sqlite.age', 'manifest.json.age']);
  });

  for (const at of some(
    ['comparing', 'importing', '1,000 events', 'checking'],
    ['1,000 events', 'checking'],
  )) {
    it(`resumes an import into a folder that died at "${at}"`, async () => {
      const env = { SVC_DATA_DIR: fresh('there') };
      await killed(at, env, 'import', path('export'));
      if (at === '1,000 events') {
        const half = Ledger.read(env.SVC_DATA_DIR);
        expect(half.events).to.have.lengthOf(1000 + 1);
      }
      await finishes(env, 'import', path('export'));
      expect(await contentOf(env)).to.equal(content);
      expect(damagedFiles(env.SVC_DATA_DIR)).to.deep.equal([]);
    });
  }

  for (const order of long ? [[], ['--in-order']] : [[]])
    it(`resumes an import into EventStoreDB ${order.join('')} that died halfway`, async () => {
      server = await EventStoreDbServer.start();
      const env = { SVC_DATA_DIR: fresh('beside'), SVC_EVENT_STORE_URL: server.url };
      await killed('/s', env, 'import', path('export'), ...order);
      await finishes(env, 'import', path('export'), ...order);
      if (order.length > 0) expect(await contentOf(env)).to.equal(content);
    });

  it('is on hold in EventStoreDB after a restore that died at each stage', async () => {
    server = await EventStoreDbServer.start();
    const env = { SVC_DATA_DIR: fresh('beside'), SVC_EVENT_STORE_URL: server.url };
    for (const at of ['/s', 'putting on hold']) {
      await killed(at, env, 'restore', path('export'));
      // Nothing may be started on it until it is complete.
      const begun = server.log.all.map(({ type }) => type);
      expect(begun).to.include('ImportBegun').and.to.not.include('ImportCompleted');
    }
    await finishes(env, 'restore', path('export'));
    const types = server.log.all.map(({ type }) => type).slice(-2);
    expect(types).to.deep.equal(['OperationsHeld', 'ImportCompleted']);
  });

  for (const at of some(
    ['verifying', 'copying', 'checking', 'putting on hold', 'closing'],
    ['checking', 'closing'],
  )) {
    it(`leaves no log when a restore dies at "${at}", and one on hold afterwards`, async () => {
      const env = { SVC_DATA_DIR: fresh('there') };
      await killed(at, env, 'restore', path('backup'));
      expect(existsSync(join(env.SVC_DATA_DIR, 'events.sqlite'))).to.equal(false);
      await finishes(env, 'restore', path('backup'));
      expect(readdirSync(env.SVC_DATA_DIR)).to.not.include('.restoring');
      const ledger = Ledger.read(env.SVC_DATA_DIR);
      expect(ledger.events.at(-1)?.type).to.equal('OperationsHeld');
      expect(ledger.events).to.have.lengthOf(manifestIn(path('export')).events + 1);
      expect(damagedFiles(env.SVC_DATA_DIR)).to.deep.equal([]);
    });
  }
});
