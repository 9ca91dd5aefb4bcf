import { expect } from 'chai';
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { certificate } from '../../support/certificates.ts';
import {
  credentialsIn,
  endsItsProcesses,
  ServiceProcess,
  type Credentials,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

interface Answer {
  readonly status: number;
  readonly body: string;
  /** SHA-256 fingerprint of the presented certificate. */
  readonly fingerprint: string;
}

/** One request on a separate connection. */
function call(
  address: string,
  path: string,
  options: { readonly token?: string; readonly body?: object } = {},
): Promise<Answer> {
  const { token, body } = options;
  const headers = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const method = body === undefined ? 'GET' : 'POST';
  return new Promise((resolve, reject) => {
    const settings = { rejectUnauthorized: false, agent: false, headers, method };
    const request = httpsRequest(`${address}${path}`, settings, (response) => {
      const { fingerprint256 } = (response.socket as TLSSocket).getPeerCertificate();
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text, fingerprint: fingerprint256 }),
      );
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function tokenOf(address: string, credentials: Credentials): Promise<string> {
  const { body } = await call(address, '/agents/auth/token', { body: credentials });
  return (JSON.parse(body) as { readonly access_token: string }).access_token;
}

describe('a running service', function () {
  this.timeout(180_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  const path = (name: string): string => join(directory(), name);
  const use = (name: 'one' | 'two'): void => {
    copyFileSync(certificate(name).cert, path('cert.pem'));
    copyFileSync(certificate(name).key, path('key.pem'));
  };
  const reread = async (service: ServiceProcess, said: string, times: number): Promise<void> => {
    service.signal('SIGHUP');
    await eventually(() => service.output.split(said).length > times, {
      limitMs: 20_000,
      what: `"${said}" in the log`,
    });
  };

  it('serves HTTPS, and loads other certificates and keys at SIGHUP without a stop', async () => {
    use('one');
    writeFileSync(path('jwt'), 'first key '.repeat(4));
    writeFileSync(path('previous'), 'older key '.repeat(4));
    const service = ServiceProcess.begin({
      SVC_DATA_DIR: path('data'),
      SVC_TLS_CERT_FILE: path('cert.pem'),
      SVC_TLS_KEY_FILE: path('key.pem'),
      JWT_SECRET_KEY_FILE: path('jwt'),
      JWT_PREVIOUS_SECRET_KEY_FILE: path('previous'),
    });
    // Printed with the first agent's credentials, once they are on the disk.
    const greeted = (): string | undefined =>
      /^Listening on (https:\/\/127\.0\.0\.1:\d+)\. Created the first agent/m.exec(
        service.output,
      )?.[1];
    const address = await found(greeted, { limitMs: 30_000, what: 'the service to greet' });
    const credentials = credentialsIn(path('data'));
    const isReady = async (): Promise<boolean> =>
      (await call(address, '/health/ready')).status === 200;
    await eventually(isReady, { limitMs: 30_000, what: 'the service to be ready' });
    const token = await tokenOf(address, credentials);
    const before = await call(address, '/tasks', { token });
    expect(before.status).to.equal(200);

    use('two');
    writeFileSync(path('jwt'), 'second key '.repeat(4));
    writeFileSync(path('previous'), 'first key '.repeat(4));
    await reread(service, 'reread certificates and keys', 1);
    const after = await call(address, '/tasks', { token });
    expect(after.status, 'the previous key still verifies').to.equal(200);
    expect(after.fingerprint).to.not.equal(before.fingerprint);

    writeFileSync(path('previous'), 'second key '.repeat(4));
    await reread(service, 'reread certificates and keys', 2);
    const dropped = await call(address, '/tasks', { token });
    expect(dropped.status, 'a token of a dropped key is no longer kept').to.equal(401);
    const renewed = await tokenOf(address, credentials);
    // A tool of an extension calls the interface of its own process, over HTTPS too.
    const invoked = await call(address, '/ext/mcp_http/invoke', {
      token: renewed,
      body: { tool: 'list_tasks', parameters: {} },
    });
    expect(invoked.status, invoked.body).to.equal(200);

    writeFileSync(path('cert.pem'), 'no certificate');
    await reread(service, 'kept the previous ones', 1);
    const kept = await call(address, '/tasks', { token: renewed });
    expect(kept.status).to.equal(200);
    expect(kept.fingerprint).to.equal(after.fingerprint);

    service.signal('SIGTERM');
    expect(await service.ended()).to.deep.equal({ code: 0, signal: null });
  });

  it('keeps its key if that of the data directory is damaged at SIGHUP', async () => {
    const service = ServiceProcess.begin({ SVC_DATA_DIR: path('data') });
    await found(() => /^Listening on (\S+)\. Created the first agent/m.exec(service.output)?.[1], {
      limitMs: 30_000,
      what: 'the service to greet',
    });
    writeFileSync(path('data/jwt-secret.key'), 'short');
    await reread(service, 'kept the previous ones', 1);
    expect(service.output).to.match(/has no key of 32 bytes or more/);
    service.signal('SIGTERM');
    expect(await service.ended()).to.deep.equal({ code: 0, signal: null });
  });

  it('stops gracefully if the file with its address cannot be removed', async () => {
    const service = await ServiceProcess.start({ SVC_DATA_DIR: path('data') });
    const written = (): string | undefined =>
      readdirSync(path('data')).find((name) => /^service-.*\.json$/.test(name));
    const name = await found(written, { limitMs: 30_000, what: 'the address in a file' });
    // As on a disk that has become read-only; a folder is not removed either.
    rmSync(path(`data/${name}`));
    mkdirSync(path(`data/${name}`));
    service.signal('SIGTERM');
    expect(await service.ended()).to.deep.equal({ code: 0, signal: null });
    expect(service.output).to.include('could not remove the address for svc');
  });

  it('starts even if SIGHUP arrives before it has loaded', async () => {
    // Sends the signal when the entry reads its limits, before it loads the rest.
    writeFileSync(
      path('early.cjs'),
      `const fs = require('node:fs');
      const { readFileSync } = fs;
      fs.readFileSync = (file, ...rest) => {
        if (file === '/proc/self/limits') process.kill(process.pid, 'SIGHUP');
        return readFileSync(file, ...rest);
      };
      require('node:module').syncBuiltinESMExports();`,
    );
    const service = await ServiceProcess.start({
      SVC_DATA_DIR: path('data'),
      NODE_OPTIONS: `--require ${path('early.cjs')}`,
    });
    service.signal('SIGTERM');
    expect(await service.ended()).to.deep.equal({ code: 0, signal: null });
  });
});
