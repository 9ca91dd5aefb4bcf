import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addRuns, addTask, onLog } from '../../app/archive/small-log.ts';
import { projectRoot } from '../../support/project-root.ts';
import { ServiceProcess, buildService, endsItsProcesses } from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svcProcess } from '../svc-process.ts';
import { leaveOut } from '../../support/left-out.ts';

const RUNS = 1200;

describe('svc, when its output is lost', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  /**
   * Bash's output for a line in which `svc` is the command line, and the exit code of a pipe's
   * first command.
   */
  function bash(line: string): { readonly stdout: string; readonly stderr: string } {
    const cli = join(projectRoot, 'dist/app/cli.js');
    const svc = `svc() { "${process.execPath}" "${cli}" "$@"; }`;
    const env = { ...process.env, SVC_DATA_DIR: directory() };
    const command = `${svc}; ${line}; echo "\${PIPESTATUS[0]}"`;
    return spawnSync('bash', ['-c', command], { encoding: 'utf8', env });
  }

  it('closes its stores before it exits, when its reader has gone', async () => {
    const at = Date.parse('2026-05-01T10:00:00Z');
    await onLog(directory(), async (store) => addRuns(store, await addTask(store, at), at, RUNS));
    const service = await ServiceProcess.start({ SVC_DATA_DIR: directory() });
    const env = { SVC_DATA_DIR: directory(), SVC_URL: service.address };
    await eventually(async () => {
      const { out } = await svcProcess(['runs', 'list', '--limit', '1', '--json'], env);
      const { total } = JSON.parse(out) as { readonly total: number };
      expect(total).to.be.at.least(RUNS);
    });
    // Whether a thread is busy is a matter of chance, hence several attempts.
    for (let time = 0; time < 4; time += 1) {
      const { stdout, stderr } = bash('svc export --format csv --of runs | head -n 1');
      expect(stderr).to.equal('exporting\n');
      expect(stdout).to.match(/^id,task_id,.*\r?\n0\n$/);
    }
  });

  it('reports that a response could not be written', function () {
    if (!existsSync('/dev/full')) leaveOut(this, 'a full device: /dev/full is missing');
    const { stdout, stderr } = bash('svc --help > /dev/full');
    expect(stderr).to.match(/^svc: could not write the output: ENOSPC[^\n]*\n$/);
    expect(stdout).to.equal('1\n');
  });

  it('continues when nobody reads its progress output', async () => {
    const at = Date.parse('2026-05-01T10:00:00Z');
    await onLog(directory(), (store) => addTask(store, at));
    const file = join(directory(), 'rows.ndjson');
    // The reader is gone before anything is written.
    const { stdout } = bash(
      `exec 2> >(true); wait $!; svc export --format ndjson --output "${file}"`,
    );
    expect(stdout).to.equal('0\n');
    expect(readFileSync(file, 'utf8')).to.include('TaskCreated');
  });
});
