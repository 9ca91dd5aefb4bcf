import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../support/project-root.ts';
import { buildService } from '../../support/service-process.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** The demo waits 30 s for the service and 40 s for its runs. A busy machine needs more for its start and end. */
const LIMIT = 120_000;

describe('the demo', function () {
  this.timeout(5 * LIMIT);
  const directory = useTemporaryDirectory();
  let started: ChildProcess[] = [];

  before(buildService);

  beforeEach(() => {
    started = [];
  });

  afterEach(() => {
    for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  });

  function startDemo() {
    const child = spawn(process.execPath, [join(projectRoot, 'dist/app/demo.js')], {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: directory() },
    });
    started.push(child);
    const output = new Signal<string>('the output of the demo');
    const end = new Signal<number | null>('the end of the demo');
    child.stdout.setEncoding('utf8').on('data', output.send);
    child.stderr.setEncoding('utf8').on('data', output.send);
    child.on('close', end.send);
    return { child, output, end, text: () => output.values.join('') };
  }

  const left = (): readonly string[] =>
    readdirSync(directory()).filter((name) => name.startsWith('svc-'));

  it('runs a task of each kind, shows them, and leaves nothing behind', async () => {
    const { end, text } = startDemo();
    expect(await end.wait(() => true, { limitMs: LIMIT }), text()).to.equal(0);
    expect(text()).to.include('As expected: 4 tasks, 7 runs, 2 calls.');
    expect(text()).to.match(/^ *4 +\d{16} +[\d:.]+ +RunAttemptFailed/m);
    expect(text()).to.not.include('"level"');
    expect(left()).to.deep.equal([]);
  });

  it('cleans up when it is stopped', async () => {
    const { child, output, end, text } = startDemo();
    await output.wait((line) => line.includes('POST /events'), { limitMs: LIMIT });
    expect(left()).to.have.lengthOf(1);
    child.kill('SIGINT');
    expect(await end.wait(() => true, { limitMs: LIMIT }), text()).to.equal(130);
    expect(text()).to.include('Stopped.');
    expect(left()).to.deep.equal([]);
  });

  it('cleans up when its terminal or its reader is gone', async () => {
    for (const leave of [
      (child: ChildProcess) => child.kill('SIGHUP'),
      (child: ChildProcess) => child.stdout?.destroy(),
    ]) {
      const { child, output, end, text } = startDemo();
      await output.wait((line) => line.includes('GET  /health/ready'), { limitMs: LIMIT });
      expect(left()).to.have.lengthOf(1);
      leave(child);
      expect(await end.wait(() => true, { limitMs: LIMIT }), text()).to.equal(130);
      expect(left()).to.deep.equal([]);
    }
  });
});
