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

describe('svc, when what it writes to is lost', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  /** What bash makes of a line in which `svc` is the command line; then the exit code of the first of a pipe. */
  function bash(line: string): { readonly stdout: string; readonly stderr: string } {
    const cli = join(projectRoot, 'dist/app/cli.js');
    const svc = `svc() { "${process.execPath}" "${cli}" "$@"; }`;
    const env = { ...process.env, SVC_DATA_DIR: directory() };
    const command = `${svc}; ${line}; echo "\${PIPESTATUS[0]}"`;
    return spawnSync('bash', ['-c', command], { encoding: 'utf8', env });
  }

  it('closes the stores that it reads before it ends, when nobody reads on', async () => {
    const at = Date.parse('2026-05-01T10:00:00Z');
    await onLog(directory(), async (store) => addRuns(store, await addTask(store, at), at, RUNS));
    const service = await ServiceProcess.start({ SVC_DATA_DIR: directory() });
    const env = { SVC_DATA_DIR: directory(), SVC_URL: service.address };
    await eventually(async () => {
      const { out } = await svcProcess(['runs', 'list', '--limit', '1', '--json'], env);
      const { total } = JSON.parse(out) as { readonly total: number };
      expect(total).to.be.at.least(RUNS);
    });
    // It was a matter of chance whether a thread was in the midst of something.
    for (let time = 0; time < 4; time += 1) {
      const { stdout, stderr } = bash('svc export --format csv --of runs | head -n 1');
      expect(stderr).to.equal('exporting\n');
      expect(stdout).to.match(/^id,task_id,.*\r?\n0\n$/);
    }
  });

  it('says that an answer could not be written', function () {
    if (!existsSync('/dev/full')) leaveOut(this, 'a full device: /dev/full is missing');
    const { stdout, stderr } = bash('svc --help > /dev/full');
    expect(stderr).to.match(/^svc: could not write the output: ENOSPC[^\n]*\n$/);
    expect(stdout).to.equal('1\n');
  });

  it('goes on with its work when nobody reads what it says beside the answer', async () => {
    const at = Date.parse('2026-05-01T10:00:00Z');
    await onLog(directory(), (store) => addTask(store, at));
    const file = join(directory(), 'rows.ndjson');
    // The reader has gone before anything is written.
    const { stdout } = bash(
      `exec 2> >(true); wait $!; svc export --format ndjson --output "${file}"`,
    );
    expect(stdout).to.equal('0\n');
    expect(readFileSync(file, 'utf8')).to.include('TaskCreated');
  });
});
