import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.ts';
import { projectRoot } from '../../support/project-root.ts';
import { requiredProgram } from '../../support/required-program.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Everything in a folder that others than its owner can open, by its path in there. */
function openToOthers(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => {
      // Files that SQLite has removed since are open to nobody.
      const stat = statSync(join(folder, name), { throwIfNoEntry: false });
      return stat !== undefined && (stat.mode & 0o077) !== 0;
    })
    .sort();
}

describe('the files of a service in a folder that others may read', function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let data = '';

  beforeEach(() => {
    data = join(directory(), 'data');
    mkdirSync(data);
    chmodSync(data, 0o755);
  });

  /** Starts a service and lets it create every kind of file. */
  async function worked(): Promise<ServiceProcess> {
    const service = await ServiceProcess.start({ SVC_DATA_DIR: data });
    const credentials = credentialsIn(data);
    const client = service.client(await signIn(service.client(), credentials));
    await client.post('/events', { topic: 'a', payload: {} });
    await eventually(async () => {
      expect((await client.get('/topics')).status).to.equal(200);
    });
    return service;
  }

  it('are accessible only to their owner: stores, keys, credentials and sockets', async () => {
    const service = await worked();
    const names = readdirSync(data, { recursive: true }).map(String);
    expect(names).to.include.members([
      'events.sqlite',
      'events.sqlite-wal',
      'events.sqlite-shm',
      'coordination.db',
      'views.db',
      'jwt-secret.key',
      'admin-credentials.json',
    ]);
    expect(names.some((name) => name.endsWith('.sock'))).to.equal(true);
    expect(openToOthers(data)).to.deep.equal([]);
    await service.terminate();
    expect(openToOthers(data)).to.deep.equal([]);
  });

  it('are made private at the next start, with the files created beside them', async () => {
    await (await worked()).terminate();
    writeFileSync(join(data, 'notes-of-somebody.txt'), 'not of the service');
    for (const name of readdirSync(data)) chmodSync(join(data, name), 0o755);
    const service = await worked();
    expect(openToOthers(data)).to.deep.equal(['notes-of-somebody.txt']);
    const closed = service.log.find(({ message }) => message === 'closed files to other users');
    expect(closed)
      .to.have.property('files')
      .that.matches(/ and \d+ more$/);
    await service.terminate();
  });

  it('cause a warning if others may replace them', async () => {
    chmodSync(data, 0o777);
    const service = await worked();
    const message = 'other users can replace files in the data directory';
    const warning = service.log.find((line) => line['message'] === message);
    expect(warning).to.include({ level: 'warn', remedy: `chmod 700 ${data}` });
    await service.terminate();
  });

  it('cause a warning with the reason if the service may not make them private', async function () {
    if (process.getuid?.() !== 0) leaveOut(this, 'files of another user: run the tests as root');
    const setpriv = requiredProgram(this, 'setpriv');
    chmodSync(directory(), 0o711);
    chmodSync(data, 0o777);
    // Owned by another user than the service's.
    writeFileSync(join(data, 'left-s1-g1.db'), '', { mode: 0o644 });
    const nobody = [setpriv, '--reuid=65534', '--regid=65534', '--clear-groups'];
    const service = await ServiceProcess.start({ SVC_DATA_DIR: data }, nobody);
    const message = 'other users can open files of the service';
    const warning = service.log.find((line) => line['message'] === message);
    expect(warning).to.include({ level: 'warn', files: 'left-s1-g1.db', reason: 'EPERM' });
    expect(warning).to.have.property('remedy').that.includes('chown');
    await service.terminate();
  });

  it('have private copies in backups, exports and restored folders', async () => {
    await (await worked()).terminate();
    for (const name of readdirSync(data)) chmodSync(join(data, name), 0o755);
    buildService();
    const svc = (...words: string[]): void => {
      const { status, stderr } = spawnSync(
        process.execPath,
        [join(projectRoot, 'dist/app/cli.js'), ...words],
        { encoding: 'utf8', env: { PATH: process.env['PATH'], SVC_DATA_DIR: data } },
      );
      expect(status, stderr).to.equal(0);
    };
    const made = join(directory(), 'made');
    mkdirSync(made);
    svc('backup', join(made, 'backup'));
    svc('export', join(made, 'export'));
    svc('export', '--format', 'ndjson', '--output', join(made, 'rows'));
    expect(openToOthers(made)).to.deep.equal([]);
    for (const name of readdirSync(join(made, 'backup'))) {
      chmodSync(join(made, 'backup', name), 0o644);
    }
    data = join(directory(), 'restored');
    mkdirSync(data);
    chmodSync(data, 0o755);
    svc('restore', join(made, 'backup'));
    expect(openToOthers(data)).to.deep.equal([]);
  });
});
