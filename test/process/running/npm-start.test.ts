import { expect } from 'chai';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.ts';
import { projectRoot } from '../../support/project-root.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Prints its process id, and exits with its own code on a signal. */
const service = `
import { endWithNpmShell } from './starting/npm-shell.ts';
endWithNpmShell();
const waiting = setInterval(() => undefined, 60_000);
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    clearInterval(waiting);
    console.log('ended', process.pid);
    process.exitCode = 7;
  });
}
console.log('up', process.pid, process.ppid);
console.log('with', JSON.stringify(process.argv.slice(1)));
`;

/** The longest wait for a build and a start, in milliseconds. */
const LIMIT_MS = 90_000;

/** Kills a process group, which may have ended by itself. */
function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ESRCH') throw error;
  }
}

describe('npm start', function () {
  // Each test builds the service, beside others that keep the machine busy.
  this.timeout(300_000);
  const directory = useTemporaryDirectory();
  let started: ChildProcess[] = [];

  beforeEach(() => {
    started = [];
    mkdirSync(join(directory(), 'app/starting'), { recursive: true });
    const copied = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
    const programs = [
      'build',
      'build-if-stale',
      'bundle',
      'bundle-page',
      'exported-files',
      'launch',
    ].map((name) => `app/${name}.mjs`);
    for (const file of [...copied, ...programs, 'app/starting/npm-shell.ts']) {
      cpSync(join(projectRoot, file), join(directory(), file));
    }
    symlinkSync(join(projectRoot, 'node_modules'), join(directory(), 'node_modules'));
    writeFileSync(join(directory(), 'app/main.ts'), service);
    writeFileSync(join(directory(), 'app/cli.ts'), '#!/usr/bin/env node\nconsole.log(1);\n');
  });

  // The whole group, because processes started by npm would outlive it.
  afterEach(() => {
    for (const { pid, exitCode } of started) {
      if (pid !== undefined && exitCode === null) killGroup(pid);
    }
  });

  function npmStart(settings: Readonly<Record<string, string>> = {}, words: string[] = []) {
    const child = spawn('npm', ['start', ...words], {
      cwd: directory(),
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, npm_config_loglevel: 'error', ...settings },
    });
    started.push(child);
    const output = new Signal<string>('the output of npm start');
    const end = new Signal<number | null>('the end of npm start');
    child.stdout.setEncoding('utf8').on('data', output.send);
    child.on('close', end.send);
    return { child, output, end };
  }

  async function processIds(output: Signal<string>): Promise<readonly number[]> {
    const line = await output.wait((text) => /up \d+ \d+/.test(text), { limitMs: LIMIT_MS });
    return [...(/up (\d+) (\d+)/.exec(line) ?? [])].slice(1).map(Number);
  }

  function build(): number | null {
    return spawnSync(process.execPath, ['app/build.mjs', '--if-stale'], { cwd: directory() })
      .status;
  }

  const built = (): string => readFileSync(join(directory(), 'dist/app/main.js'), 'utf8');

  it('passes on signals and the exit code if the shell replaces itself with the service', async function () {
    if (!existsSync('/bin/bash')) leaveOut(this, 'npm start under bash: /bin/bash is missing');
    const { child, output, end } = npmStart({ npm_config_script_shell: '/bin/bash' });
    const [, parent] = await processIds(output);
    expect(parent).to.equal(child.pid);
    child.kill('SIGTERM');
    expect(await end.wait(() => true, { limitMs: LIMIT_MS })).to.equal(7);
  });

  it('stops the service gracefully if its shell exits without passing a signal on', async function () {
    if (!existsSync('/bin/dash')) leaveOut(this, 'npm start under dash: /bin/dash is missing');
    const { child, output } = npmStart({ npm_config_script_shell: '/bin/dash' });
    const [service] = await processIds(output);
    child.kill('SIGTERM');
    await output.wait((text) => text.includes(`ended ${service}`), { limitMs: LIMIT_MS });
  });

  it('returns the exit code of a service that exits by itself, whatever the shell', async () => {
    writeFileSync(join(directory(), 'app/main.ts'), 'process.exitCode = 3;');
    expect(await npmStart().end.wait(() => true, { limitMs: LIMIT_MS })).to.equal(3);
  });

  it('sends Ctrl-C to the service once', async () => {
    const { child, output, end } = npmStart();
    const [service] = await processIds(output);
    // The terminal sends it to all of them.
    process.kill(-(child.pid ?? 0), 'SIGINT');
    await output.wait((text) => text.includes(`ended ${service}`), { limitMs: LIMIT_MS });
    await end.wait(() => true, { limitMs: LIMIT_MS });
    expect(output.values.join('').match(/ended/g)).to.have.lengthOf(1);
  });

  it("passes only the service's own arguments to it", async () => {
    const { output } = npmStart({}, ['--', 'one', '--two']);
    const line = await output.wait((text) => text.includes('with'), { limitMs: LIMIT_MS });
    const [, words = '[]'] = /with (.*)/.exec(line) ?? [];
    expect(JSON.parse(words)).to.deep.equal([
      join(directory(), 'dist/app/main.js'),
      'one',
      '--two',
    ]);
  });

  it("fails with the compiler's exit code if the code does not compile", async () => {
    writeFileSync(join(directory(), 'app/main.ts'), 'const a: number = "text";');
    const { end } = npmStart();
    expect(await end.wait(() => true, { limitMs: LIMIT_MS })).to.be.oneOf([1, 2]);
  });

  it('compiles only after a change', () => {
    expect(build()).to.equal(0);
    const main = join(directory(), 'dist/app/main.js');
    writeFileSync(main, 'kept');
    expect(build()).to.equal(0);
    expect(built()).to.equal('kept');
    writeFileSync(join(directory(), 'app/main.ts'), `${service}// changed\n`);
    expect(build()).to.equal(0);
    expect(built()).to.include('process.pid');
  });

  it('makes the commands executable, again with each build', () => {
    for (const change of ['first', 'second']) {
      writeFileSync(join(directory(), 'app/main.ts'), `${service}// ${change}\n`);
      expect(build()).to.equal(0);
      expect(statSync(join(directory(), 'dist/app/cli.js')).mode & 0o111).to.equal(0o111);
    }
  });

  it('removes deleted files, and copies files that are not compiled', () => {
    writeFileSync(join(directory(), 'app/page.html'), '<p>');
    writeFileSync(join(directory(), 'app/old.ts'), 'export const old = 1;');
    build();
    writeFileSync(join(directory(), 'app/main.ts'), `${service}// changed\n`);
    rmSync(join(directory(), 'app/old.ts'));
    build();
    expect(existsSync(join(directory(), 'dist/app/old.js'))).to.equal(false);
    expect(existsSync(join(directory(), 'dist/app/page.html'))).to.equal(true);
    expect(existsSync(join(directory(), 'dist/package.json'))).to.equal(true);
  });

  it('fails, and keeps the last build, when the code does not compile', () => {
    build();
    writeFileSync(join(directory(), 'app/main.ts'), 'const a: number = "text";');
    expect(build()).to.not.equal(0);
    expect(built()).to.include('process.pid');
  });
});
