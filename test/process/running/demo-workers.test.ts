import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { projectRoot } from '../../support/project-root.ts';
import { requiredProgram } from '../../support/required-program.ts';
import { buildService } from '../../support/service-process.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/**
 * The time limit in milliseconds. The demo itself waits up to a minute for each result, which even a busy machine never
 * needs.
 */
const LIMIT = 240_000;

describe('the demo of workers', function () {
  this.timeout(LIMIT + 60_000);
  const directory = useTemporaryDirectory();

  before(function () {
    requiredProgram(this, 'python3-venv');
    requiredProgram(this, 'curl');
    buildService();
  });

  it('ends as expected even if service and worker are killed, and leaves nothing behind', async () => {
    const script = 'examples/approve-and-notify/demo.mjs';
    const child = spawn(process.execPath, [script], {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: directory() },
    });
    const output = new Signal<string>('the output of the demo');
    const end = new Signal<number | null>('the end of the demo');
    child.stdout.setEncoding('utf8').on('data', output.send);
    child.stderr.setEncoding('utf8').on('data', output.send);
    child.on('close', end.send);
    const text = (): string => output.values.join('');
    try {
      expect(await end.wait(() => true, { limitMs: LIMIT }), text()).to.equal(0);
    } finally {
      child.kill('SIGTERM');
    }
    const shown = text();
    expect(shown).to.include('As expected: the run succeeded, and one email was sent.');
    expect(shown).to.match(
      / confirm +waiting +approval .* approval \S+: Ship order 4712 for 80 EUR\?/,
    );
    expect(shown).to.match(/ mail +waiting +emails\.send .* worker worker-1 is doing it \(\d+ %\)/);
    for (const step of ['invoice', 'confirm', 'parcel', 'notify']) {
      expect(shown).to.match(new RegExp(`\n {2}${step} +succeeded `));
    }
    const left = readdirSync(directory()).filter((name) => name.startsWith('svc-'));
    expect(left).to.deep.equal([]);
  });
});
