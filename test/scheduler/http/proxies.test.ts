import { expect } from 'chai';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { HttpClient } from '../../../scheduler/http/http-client.ts';
import { Proxies } from '../../../scheduler/http/proxies.ts';
import { RawServer, type RawRequest } from '../../support/raw-server.ts';
import { Signal } from '../../support/signals.ts';
import { testCertificate } from '../../support/tls-certificate.ts';
import { bothCallers, callersHarness, namesAre, type CallOptions } from './callers.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const { cert: ca } = testCertificate;

/** Connects CONNECT requests to a port of this machine. */
function tunnel(socket: Socket, port: number): void {
  const onward = connect(port, '127.0.0.1');
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  socket.removeAllListeners('data');
  socket.pipe(onward).pipe(socket);
  socket.on('close', () => onward.destroy());
  onward.on('error', () => socket.destroy());
}

describe('a proxy', () => {
  const { server, caller, closing } = callersHarness();
  const lookUpAll = namesAre({
    'plain.example': '93.184.215.14',
    'secure.example': '93.184.215.14',
    'inside.example': '10.0.0.7',
    'metadata.example': '169.254.169.254',
  });

  const by = (proxy: string, more: CallOptions = {}, except: readonly string[] = []) => ({
    allowPrivate: false,
    lookUpAll,
    ca,
    proxies: { http: new URL(proxy), https: new URL(proxy), except },
    ...more,
  });

  /** A TLS server for `secure.example`, in front of a raw server. */
  async function secure(answer: string): Promise<{ port: number; raw: RawServer }> {
    const raw = new RawServer((_, socket) => socket.write(answer));
    const tls = createTlsServer(testCertificate, (socket) => raw.serve(socket));
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    closing.push(async () => {
      for (const socket of raw.sockets) socket.destroy();
      await new Promise((resolve) => tls.close(resolve));
    });
    return { port: (tls.address() as AddressInfo).port, raw };
  }

  for (const name of bothCallers) {
    it(`receives http requests of ${name} with absolute URLs`, async () => {
      const { origin, server: proxy } = await server((_, socket) => socket.write(ok));
      const client = caller(name, by(origin.replace('//', '//me:p%40ss@')));
      expect((await client.call('http://plain.example:8080/a?b=c')).text).to.equal('ok');
      expect((await client.call('http://plain.example/')).text).to.equal('ok');
      const [first, second] = proxy.requests;
      expect(first?.line).to.match(/^(GET|POST) http:\/\/plain\.example:8080\/a\?b=c HTTP\/1\.1$/);
      expect(second?.line).to.match(/ http:\/\/plain\.example\/ /);
      expect(first?.headers).to.include({
        host: 'plain.example:8080',
        'proxy-authorization': `Basic ${Buffer.from('me:p@ss').toString('base64')}`,
      });
      // Its connection is kept.
      expect(second).to.include({ connection: 1, nth: 2 });
    });

    it(`connects ${name} to https hosts without seeing the content`, async () => {
      const { port, raw } = await secure(ok);
      const { origin, server: proxy } = await server((_, socket) => tunnel(socket, port));
      const client = caller(name, by(origin.replace('//', '//me:secret@')));
      expect(await client.call('https://secure.example/a')).to.include({ status: 200, text: 'ok' });
      expect(await client.call('https://secure.example/b')).to.include({ status: 200, text: 'ok' });
      expect(proxy.requests.map(({ line }) => line)).to.deep.equal([
        'CONNECT secure.example:443 HTTP/1.1',
      ]);
      const basic = `Basic ${Buffer.from('me:secret').toString('base64')}`;
      expect(proxy.requests[0]?.headers['proxy-authorization']).to.equal(basic);
      expect(raw.requests.map(({ nth }) => nth)).to.deep.equal([1, 2]);
      expect(raw.requests[0]?.headers).to.include({ host: 'secure.example' });
      expect(raw.requests[0]?.headers).not.to.have.any.keys('proxy-authorization');
    });

    it(`that closes a kept tunnel of ${name} opens another`, async () => {
      const tls = await secure(ok);
      tls.raw.answer = ({ connection, nth }, socket) =>
        connection === 1 && nth === 2 ? void socket.destroy() : void socket.write(ok);
      const { origin, server: proxy } = await server((_, socket) => tunnel(socket, tls.port));
      const client = caller(name, by(origin));
      for (let each = 0; each < 2; each += 1) {
        expect((await client.call('https://secure.example/')).text).to.equal('ok');
      }
      expect(proxy.requests).to.have.lengthOf(2);
      expect(tls.raw.requests).to.have.lengthOf(3);
    });

    it(`is not used by ${name} for private addresses or their names`, async () => {
      const { origin, server: proxy } = await server((_, socket) => socket.write(ok));
      const client = caller(name, by(origin));
      for (const url of [
        'http://10.0.0.7/',
        'https://10.0.0.7/',
        'http://inside.example/',
        'https://inside.example/',
      ]) {
        const { error } = await client.call(url);
        expect(error, url).to.match(/is a private address; .* SVC_HTTP_ALLOW_PRIVATE$/);
      }
      const open = caller(name, by(origin, { allowPrivate: true }));
      expect((await open.call('http://metadata.example/')).error).to.match(/metadata service/);
      expect(proxy.requests).to.deep.equal([]);
    });

    it(`is used by ${name} for a name that cannot be resolved here only if the name is listed`, async () => {
      const { origin, server: proxy } = await server((_, socket) => socket.write(ok));
      const { error } = await caller(name, by(origin)).call('http://far.example/');
      expect(error).to.match(
        /far\.example cannot be resolved here, so its address cannot be checked .*ENOTFOUND.*; to leave that to the proxy, add the name to SVC_HTTP_ALLOW_PRIVATE$/,
      );
      expect(proxy.requests).to.deep.equal([]);
      const client = caller(name, by(origin, { allowPrivate: ['far.example'] }));
      expect((await client.call('http://far.example/')).text).to.equal('ok');
    });

    it(`that rejects ${name} is named in the error, without its password`, async () => {
      const { origin } = await server((_, socket) =>
        socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n'),
      );
      const client = caller(name, by(origin.replace('//', '//me:secret@')));
      const { error } = await client.call('https://secure.example/');
      const { host } = new URL(origin);
      expect(error).to.match(
        new RegExp(`the proxy ${host} answered CONNECT with 407; HTTPS_PROXY must contain`),
      );
      expect(error).not.to.include('secret');
    });

    it(`that is unavailable is named to ${name}`, async () => {
      const { origin, server: gone } = await server(() => {});
      await gone.close();
      closing.splice(closing.length - 1, 1);
      const client = caller(name, by(origin));
      const { error } = await client.call('https://secure.example/');
      expect(error).to.match(/could not reach the proxy 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
    });
  }

  it('may use TLS itself', async () => {
    const target = await secure(ok);
    const proxy = await secure(ok);
    proxy.raw.answer = ({ line }, socket) =>
      line.startsWith('CONNECT') ? tunnel(socket, target.port) : void socket.write(ok);
    const client = caller('http.request', by(`https://127.0.0.1:${proxy.port}`));
    expect((await client.call('https://secure.example/')).text).to.equal('ok');
    expect((await client.call('http://plain.example/')).text).to.equal('ok');
    expect(proxy.raw.requests.map(({ line }) => line)).to.deep.equal([
      'CONNECT secure.example:443 HTTP/1.1',
      'GET http://plain.example/ HTTP/1.1',
    ]);
  });

  it('is bypassed for NO_PROXY, with address checks in force', async () => {
    const there = await server((_, socket) => socket.write(ok));
    const { origin, server: proxy } = await server((_, socket) => socket.write(ok));
    const lookUp = { lookUpAll: namesAre({ 'near.example': '127.0.0.1' }) };
    const url = there.origin.replace('127.0.0.1', 'near.example');
    const open = caller(
      'http.request',
      by(origin, { ...lookUp, allowPrivate: true }, ['.example']),
    );
    expect((await open.call(url)).text).to.equal('ok');
    const careful = caller('http.request', by(origin, lookUp, ['near.example']));
    expect((await careful.call(url)).error).to.match(/private address/);
    expect(there.server.requests).to.have.lengthOf(1);
    expect(proxy.requests).to.deep.equal([]);
  });

  it('receives each hop of a redirect', async () => {
    const { origin, server: proxy } = await server(({ line }: RawRequest, socket) => {
      const location = 'Location: http://inside.example/\r\n';
      const moved = `HTTP/1.1 302 There\r\n${location}Content-Length: 0\r\n\r\n`;
      socket.write(line.includes('plain') ? moved : ok);
    });
    const client = caller('http.request', by(origin));
    const { error } = await client.call('http://plain.example/');
    expect(error).to.match(/inside\.example \(10\.0\.0\.7\) is a private address/);
    expect(proxy.requests).to.have.lengthOf(1);
  });

  it('that does not respond does not delay closing the client', async () => {
    const asked = new Signal<void>('a request to connect');
    const { origin } = await server(() => asked.send());
    const client = caller('http.request', by(origin));
    const calling = client.call('https://secure.example/');
    await asked.wait();
    await closing.pop()?.();
    expect((await calling).error).to.match(/could not reach the proxy /);
  });

  it('that does not respond does not delay an aborted request, and is disconnected', async () => {
    const asked = new Signal<Socket>('a request to connect');
    const { origin } = await server((_, socket) => asked.send(socket));
    const client = new HttpClient(by(origin));
    closing.push(() => client.close());
    const leaving = new AbortController();
    const calling = client
      .request(new URL('https://secure.example/'), {
        method: 'GET',
        headers: {},
        body: null,
        signal: leaving.signal,
        isRepeatable: true,
      })
      .catch((error: unknown) => error);
    const socket = await asked.wait();
    const left = once(socket, 'close');
    const reason = new Error('nobody waits');
    leaving.abort(reason);
    expect(await calling).to.equal(reason);
    await left;
  });
});

describe('proxy selection', () => {
  const [http, https] = [new URL('http://proxy:1'), new URL('http://proxy:2')];
  const chosen = (url: string, ...except: string[]): string | null =>
    new Proxies({ http, https, except }).for(new URL(url))?.port ?? null;

  it('depends on the protocol', () => {
    expect(chosen('http://a.example/')).to.equal('1');
    expect(chosen('https://a.example/')).to.equal('2');
    expect(new Proxies({ http, https: null, except: [] }).for(new URL('https://a/'))).to.equal(
      null,
    );
  });

  const covered: readonly (readonly [entry: string, url: string, isCovered: boolean])[] = [
    ['*', 'http://a.example/', true],
    ['a.example', 'http://a.example/', true],
    ['a.example', 'https://b.A.example/', true],
    ['a.example', 'http://ba.example/', false],
    ['.a.example', 'http://b.a.example/', true],
    ['.a.example', 'http://a.example/', true],
    ['*.a.example', 'http://b.a.example/', true],
    ['A.Example', 'http://a.example./', true],
    ['a.example:8080', 'http://a.example:8080/', true],
    ['a.example:8080', 'http://a.example/', false],
    ['a.example:443', 'https://a.example/', true],
    ['10.0.0.0/8', 'http://10.1.2.3/', true],
    ['10.0.0.0/8', 'http://11.1.2.3/', false],
    ['10.1.2.3', 'http://10.1.2.3:99/', true],
    ['10.1.2.3:80', 'http://10.1.2.3:99/', false],
    ['::1', 'http://[::1]/', true],
    ['[::1]:80', 'http://[::1]/', true],
    ['[::1]:81', 'http://[::1]/', false],
    ['fd00::/8', 'http://[fd12::1]/', true],
    ['localhost', 'http://localhost:3000/', true],
    ['10.*', 'http://10.1.2.3/', false],
  ];
  for (const [entry, url, isCovered] of covered) {
    it(`${isCovered ? 'excludes' : 'does not exclude'} ${url} for ${entry}`, () => {
      expect(chosen(url, 'other.example', entry) === null).to.equal(isCovered);
    });
  }
});
