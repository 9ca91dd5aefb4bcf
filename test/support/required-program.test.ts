import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { projectRoot } from './project-root.ts';
import { findProgram } from './required-program.ts';
import { useTemporaryDirectory } from './temporary-directory.ts';

const mocha = join(
  dirname(createRequire(import.meta.url).resolve('mocha/package.json')),
  'bin/mocha.js',
);

/** A test file that needs a program from the folder in `PATH`. */
const needy = (support: string): string => `
  import { requiredProgram } from ${JSON.stringify(support)};
  import { realServerAt } from ${JSON.stringify(support.replace('required-program', 'left-out'))};
  realServerAt('SVC_TEST_ESDB_URL');
  describe('what needs a browser', () => {
    let path;
    before(function () { path = requiredProgram(this, 'chromium'); });
    it('runs', () => console.log('found ' + path));
  });
`;

describe('a test that needs a program from outside npm', () => {
  const directory = useTemporaryDirectory();

  /** Runs such a test with a `PATH` of one folder, which is empty at first. */
  function run(
    env: Record<string, string>,
    ...words: string[]
  ): { status: number | null; output: string } {
    const file = join(directory(), 'needy.test.ts');
    writeFileSync(join(directory(), 'package.json'), '{"type": "module"}');
    writeFileSync(file, needy(join(projectRoot, 'test/support/required-program.ts')));
    const { status, stdout, stderr } = spawnSync(process.execPath, [mocha, file, ...words], {
      cwd: projectRoot,
      env: { PATH: directory(), ...env },
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  }

  for (const mode of ['--parallel', '--no-parallel']) {
    it(`is skipped without the program, and the run says so in one line at its end: ${mode}`, () => {
      const { status, output } = run({}, mode);
      expect(status, output).to.equal(0);
      expect(output).to.match(/1 pending/);
      expect(output.trimEnd().split('\n').slice(-2)).to.deep.equal([
        'Left out: a real EventStoreDB: set SVC_TEST_ESDB_URL to test against one',
        'Left out: the page in a browser: chromium is missing (Debian: apt-get install chromium-headless-shell)',
      ]);
    });
  }

  it('fails in CI without the program, but a real server is optional there too', () => {
    const { status, output } = run({ CI: 'true' });
    expect(status, output).to.equal(1);
    expect(output)
      .to.match(/1 failing/)
      .and.to.include('chromium is missing');
    expect(output).to.not.match(/pending/);
    expect(output.match(/^Left out: .*$/gm)).to.have.lengthOf(1);
  });

  it('runs with the program, without a line about it', () => {
    writeFileSync(join(directory(), 'chromium'), '', { mode: 0o755 });
    const { status, output } = run({ CI: 'true', SVC_TEST_ESDB_URL: 'esdb://127.0.0.1:1' });
    expect(status, output).to.equal(0);
    expect(output).to.include(`found ${join(directory(), 'chromium')}`);
    expect(output).to.not.include('Left out');
  });
});

describe('a Python module that a test needs', () => {
  const directory = useTemporaryDirectory();
  const path = process.env['PATH'] ?? '';
  afterEach(() => {
    process.env['PATH'] = path;
  });

  it('is searched in each interpreter', () => {
    const [first, second] = [join(directory(), 'a'), join(directory(), 'b')];
    for (const [folder, code] of [
      [first, 1],
      [second, 0],
    ] as const) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'python3'), `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 });
    }
    process.env['PATH'] = `${first}:${second}`;
    expect(findProgram('python3-dateutil')).to.equal(join(second, 'python3'));
    process.env['PATH'] = first;
    expect(findProgram('python3-dateutil')).to.equal(undefined);
  });
});
