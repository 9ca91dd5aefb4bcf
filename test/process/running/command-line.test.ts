import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../support/project-root.ts';
import { ServiceProcess, buildService, endsItsProcesses } from '../../support/service-process.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svcProcess, type EndedCall } from '../svc-process.ts';

describe('svc as a process', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  const svc = (
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<EndedCall> => svcProcess(words, { SVC_DATA_DIR: directory(), ...env });

  it('works beside a running service: applies, runs, follows, simulates, and resets the admin', async () => {
    const service = await ServiceProcess.start({ SVC_DATA_DIR: directory() });
    const url = { SVC_URL: service.address };
    const file = join(directory(), 'tasks.yaml');
    const step = '{ uses: log, with: { message: swept } }';
    writeFileSync(
      file,
      `set: a\ntasks: [{ name: sweep, schedule_kind: cron, schedule_expr: 0 3 * * *, payload: { pipeline: [${step}] } }]`,
    );
    const applied = await svc(['apply', '-f', file, '--json'], url);
    expect(applied.code, applied.err).to.equal(0);
    const { steps } = JSON.parse(applied.out) as { steps: { task_id: string }[] };
    const task = steps[0]?.task_id ?? '';
    const ran = await svc(['tasks', 'run', task, '--wait', '30', '--json'], url);
    expect(ran.code, ran.err).to.equal(0);
    const { details } = JSON.parse(ran.out) as { details: { run_id: string } };
    const followed = await svc(['runs', 'follow', details.run_id], url);
    expect(followed.out).to.match(/info +step_0 swept\nstep step_0 succeeded.*\nsucceeded\n$/);
    const simulated = await svc(['simulate', '--days', '2', '--json']);
    expect(JSON.parse(simulated.out)).to.include({ total: 2 });
    const health = await svc(['health'], url);
    expect(health).to.include({ code: 0, err: '' });

    const before = readFileSync(join(directory(), 'admin-credentials.json'), 'utf8');
    expect((await svc(['admin', 'reset'])).code).to.equal(0);
    const lost = JSON.parse(before) as { agent_id: string; agent_secret: string };
    const old = { SVC_AGENT_ID: lost.agent_id, SVC_AGENT_SECRET: lost.agent_secret };
    expect((await svc(['tasks', 'list'], { ...url, ...old })).code).to.equal(4);
    expect((await svc(['tasks', 'list'], url)).code).to.equal(0);
  });

  it('finds the service that runs on its data directory, whatever its port, without a folder for its token too', async () => {
    const service = await ServiceProcess.start({ SVC_DATA_DIR: directory() });
    expect(service.address).to.not.match(/:8080$/);
    expect(await svc(['tasks', 'list'])).to.include({ code: 0, err: '' });
    expect((await svc(['doctor'])).out).to.match(/ok +clocks/);
    // It continues without a folder for its token if the system cannot create it.
    const env = { SVC_URL: service.address, XDG_STATE_HOME: '/proc/svc-state' };
    expect(await svc(['health'], env)).to.include({ code: 0, err: '' });
    expect(await svc(['tasks', 'list'], env)).to.include({ code: 0, err: '' });
    await service.terminate();
    const { code, err } = await svc(['tasks', 'list']);
    expect(code, err).to.equal(6);
    expect(err).to.include('no response from http://127.0.0.1:8080');
    expect(readdirSync(directory()).filter((name) => name.startsWith('service-'))).to.deep.equal(
      [],
    );
  });

  it('completes commands, options and their values in bash', async () => {
    const { out: script } = await svc(['completion', 'bash']);
    const completed = (typed: string): readonly string[] => {
      const words = typed.split(' ');
      const line = `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=${words.length - 1}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout, stderr } = spawnSync('bash', ['-c', line, 'bash', ...words], {
        encoding: 'utf8',
      });
      expect(stderr).to.equal('');
      return stdout.trimEnd().split('\n');
    };
    expect(completed('svc ru')).to.deep.equal(['runs']);
    expect(completed('svc tasks ')).to.include.members(['list', 'create', 'explain']);
    expect(completed('svc --json tasks pa')).to.deep.equal(['pause']);
    expect(completed('svc --url http://x runs re')).to.deep.equal(['retry', 'redrive']);
    expect(completed('svc tasks list --st')).to.deep.equal(['--status']);
    expect(completed('svc tasks list --status ')).to.deep.equal(['active', 'paused', 'canceled']);
    expect(completed('svc runs retry --j')).to.deep.equal(['--json']);
  });

  it('exits quietly when its reader has gone', () => {
    const cli = join(projectRoot, 'dist/app/cli.js');
    const line = `"${process.execPath}" "${cli}" tasks create --help | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', line], { encoding: 'utf8' });
    expect(stderr).to.equal('');
    expect(stdout).to.match(/^Usage: svc tasks create \[options\]\n0\n$/);
  });
});
