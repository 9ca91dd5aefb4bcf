import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.ts';
import { projectRoot } from '../../support/project-root.ts';
import { requiredProgram } from '../../support/required-program.ts';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  useTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

/** Everything in a folder that users other than its owner can open, by its relative path. */
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
  /** A folder with the files of a service that has ended. */
  let used: TemporaryDirectory;
  /** Its files and folders while the service ran, and those that other users could open. */
  let whileRunning: { readonly names: readonly string[]; readonly open: readonly string[] };
  let data = '';

  before(async () => {
    used = await makeTemporaryDirectory();
    data = join(used.path, 'data');
    mkdirSync(data);
    chmodSync(data, 0o755);
    const service = await worked();
    const names = readdirSync(data, { recursive: true }).map(String);
    whileRunning = { names, open: openToOthers(data) };
    await service.terminate();
  });
  after(() => used.remove());

  beforeEach(() => {
    data = join(directory(), 'data');
    mkdirSync(data);
    chmodSync(data, 0o755);
  });

  /** Fills the folder with the files that a service has left. */
  const copyUsed = (): void => cpSync(join(used.path, 'data'), data, { recursive: true });

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

  it('are accessible only to their owner: stores, keys, credentials and sockets', () => {
    const { names, open } = whileRunning;
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
    expect(open).to.deep.equal([]);
    expect(openToOthers(join(used.path, 'data'))).to.deep.equal([]);
  });

  it('are made private at the next start, with the files created beside them', async () => {
    copyUsed();
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
    copyUsed();
    for (const name of readdirSync(data)) chmodSync(join(data, name), 0o755);
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
