import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_URL, serviceAddress } from '../../../app/cli/calling/service-address.ts';
import { announce, announced } from '../../../app/starting/announcement.ts';
import { svc } from '../cli/command-line.ts';
import { certificate } from '../../support/certificates.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const AT = '2026-11-21T09:00:00.000Z';

describe('the announced address of a service', () => {
  const directory = useTemporaryDirectory();
  let servers: (Server | TlsServer)[] = [];

  beforeEach(() => {
    servers = [];
  });
  afterEach(async () => {
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    }
  });

  /** A server that responds to `/health/live` like an instance of the service. */
  async function serving(instance: string): Promise<string> {
    const server = createServer((_, response) => response.end(JSON.stringify({ instance })));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const found = (env = {}, given = {}): Promise<string> =>
    serviceAddress({ SVC_DATA_DIR: directory(), ...env }, given, new AbortController().signal);

  /** Repeats the lookup, as a service on a busy machine may miss its deadline. */
  const expectFound = (address: string, env = {}, given = {}): Promise<void> =>
    eventually(async () => {
      expect(await found(env, given)).to.equal(address);
    });

  /** A process id that was used and is free again. */
  const pidOfGone = (): number => spawnSync(process.execPath, ['-e', '']).pid;

  const leave = (about: Readonly<Record<string, unknown>>): void => {
    const whole = { pid: process.pid, host: hostname(), started_at: AT, ...about };
    writeFileSync(
      join(directory(), `service-${String(about['instance'])}.json`),
      JSON.stringify(whole),
    );
  };

  it('is found by svc and removed when the service stops', async () => {
    const address = await serving('one');
    const withdraw = announce(directory(), { address, instance: 'one' }, AT);
    await expectFound(address);
    await expectFound(address, { SVC_DATA_DIR: '/nowhere' }, { dataDir: directory() });
    const [file = ''] = readdirSync(directory());
    expect(statSync(join(directory(), file)).mode & 0o077).to.equal(0);
    withdraw();
    expect(readdirSync(directory())).to.deep.equal([]);
    expect(await found()).to.equal(DEFAULT_URL);
  });

  it('is overridden by --url and SVC_URL', async () => {
    announce(directory(), { address: await serving('one'), instance: 'one' }, AT);
    expect(await found({ SVC_URL: 'http://a' })).to.equal('http://a');
    expect(await found({ SVC_URL: 'http://a' }, { url: 'http://b' })).to.equal('http://b');
  });

  it('is that of the newest of several services', async () => {
    const later = AT.replace('09:', '10:');
    leave({ instance: 'older', address: await serving('older') });
    const address = await serving('newer');
    leave({ instance: 'newer', address, started_at: later });
    await expectFound(address);
  });

  it('is not used if another program listens there', async () => {
    leave({ instance: 'killed', address: await serving('another service') });
    expect(await found()).to.equal(DEFAULT_URL);
  });

  it('is ignored for a dead process, and removed by the next start', async () => {
    const address = await serving('killed');
    leave({ instance: 'killed', address, pid: pidOfGone() });
    leave({
      instance: 'elsewhere',
      address: 'http://127.0.0.1:1',
      host: 'another',
      pid: pidOfGone(),
    });
    expect(await found()).to.equal(DEFAULT_URL);
    announce(directory(), { address, instance: 'next' }, AT);
    expect(readdirSync(directory()).sort()).to.deep.equal([
      'service-elsewhere.json',
      'service-next.json',
    ]);
  });

  it('is the loopback address of a service on all addresses', () => {
    for (const host of ['0.0.0.0', '[::]']) {
      const withdraw = announce(directory(), { address: `http://${host}:81`, instance: 'a' }, AT);
      const loopback = host === '0.0.0.0' ? '127.0.0.1' : '[::1]';
      expect(announced(directory())[0]?.address).to.equal(`http://${loopback}:81`);
      withdraw();
    }
  });

  it('is used despite an untrusted certificate, so the call fails with the reason', async () => {
    const { cert, key } = certificate('one');
    const files = { cert: readFileSync(cert), key: readFileSync(key) };
    const server = createTlsServer(files, (_, response) => response.end('{"instance":"a"}'));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    leave({ instance: 'a', address });
    await expectFound(address);
    const env = { SVC_DATA_DIR: directory(), SVC_TOKEN: 'token' };
    await eventually(async () => {
      const called = await svc(['tasks', 'list'], { env });
      expect(called.code).to.equal(6);
      expect(called.err).to.match(
        /its certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\); set NODE_EXTRA_CA_CERTS/,
      );
    });
    const trusted = await serving('b');
    leave({ instance: 'b', address: trusted });
    await expectFound(trusted);
  });

  it('is missing if the data directory is a file', async () => {
    const file = join(directory(), 'file');
    writeFileSync(file, '');
    expect(await found({ SVC_DATA_DIR: file })).to.equal(DEFAULT_URL);
  });

  it('is ignored if the file is damaged', async () => {
    writeFileSync(join(directory(), 'service-half.json'), '{"address":"http://127.0.0.1:1"');
    writeFileSync(join(directory(), 'service-else.json'), '{"address":1}');
    expect(announced(directory())).to.deep.equal([]);
    expect(await found()).to.equal(DEFAULT_URL);
  });
});
