import { expect } from 'chai';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createLog } from '../../../observability/create-log.ts';
import { ApiClient } from '../../support/api-client.ts';
import { ServiceProcess, buildService, endsItsProcesses } from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';
import { leaveOut } from '../../support/left-out.ts';

/** An unused port. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

describe('the service, when its log cannot be written', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  for (const [name, output] of Object.entries({
    'the disk is full': '/dev/full',
    'its reader is gone': '>(true)',
  })) {
    it(`works, and exits gracefully, if ${name}`, async function () {
      if (!existsSync('/dev/full')) leaveOut(this, 'a full device: /dev/full is missing');
      const port = await freePort();
      const service = ServiceProcess.begin(
        { SVC_DATA_DIR: join(directory(), 'data'), SVC_PORT: String(port) },
        ['bash', '-c', `exec "$@" > ${output}`, 'bash'],
      );
      const client = new ApiClient(`http://127.0.0.1:${port}`, null);
      await eventually(
        async () => {
          expect(service.end, service.output).to.equal(undefined);
          expect((await client.get('/health/ready')).status).to.equal(200);
        },
        { limitMs: 30_000 },
      );
      client.close();
      process.kill(service.pid, 'SIGTERM');
      expect(await service.ended(), service.output).to.deep.equal({ code: 0, signal: null });
    });
  }
});

describe('a log on a full disk', () => {
  let disk: SmallDisk | null = null;
  afterEach(() => {
    disk?.remove();
    disk = null;
  });
  const directory = useTemporaryDirectory();

  it('continues when there is space, with the waiting lines, and reports the number of lost ones', async function () {
    const logs = join(directory(), 'logs');
    mkdirSync(logs);
    disk = mountSmallDisk(this, logs);
    const path = join(logs, 'service.log');
    const fd = openSync(path, 'a');
    const log = createLog({ level: 'info', fd });
    log.info('before');
    disk.fill();
    const filling = 'x'.repeat(10_000);
    for (let n = 0; n < 200; n += 1) log.info(`meanwhile ${n}`, { filling });
    disk.empty();
    log.info('after');
    const lines = (): Record<string, unknown>[] =>
      readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const written = lines().map(({ message }) => message);
    expect(written.slice(0, 2)).to.deep.equal(['before', 'meanwhile 0']);
    expect(written.slice(-2)).to.deep.equal(['after', 'log lines lost']);
    expect(written.length - 1 + Number(lines().at(-1)?.['lost'])).to.equal(202);
    closeSync(fd);
  });
});
