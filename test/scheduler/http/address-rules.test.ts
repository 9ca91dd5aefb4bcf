import { expect } from 'chai';
import { AddressRules, type AllowedPrivate } from '../../../scheduler/http/address-rules.ts';
import { parseHostEntry } from '../../../scheduler/http/host-list.ts';
import { bothCallers, callersHarness, namesAre } from './callers.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** The decision about an address, or about a name that resolves to it. */
async function verdict(
  allowPrivate: AllowedPrivate,
  host: string,
  address?: string,
): Promise<'allowed' | 'private' | 'metadata'> {
  const lookUpAll = namesAre(address === undefined ? {} : { [host]: address });
  const rules = new AddressRules({ allowPrivate, lookUpAll });
  try {
    if (address === undefined) rules.checkLiteral(new URL(`http://${host}/`));
    else await rules.checkName(host);
    return 'allowed';
  } catch (error) {
    return (error as Error).message.includes('metadata') ? 'metadata' : 'private';
  }
}

describe('address rules', () => {
  const list = ['10.0.0.0/8', 'fd00::/8', '192.168.1.7', '[::1]', 'db.internal', '*.svc.internal'];
  const verdicts: readonly (readonly [AllowedPrivate, string, string | undefined, string])[] = [
    [false, '10.0.0.1', undefined, 'private'],
    [false, '93.184.215.14', undefined, 'allowed'],
    [true, '10.0.0.1', undefined, 'allowed'],
    [true, 'localhost', '127.0.0.1', 'allowed'],
    [list, '10.255.0.1', undefined, 'allowed'],
    [list, '0x0a000001', undefined, 'allowed'],
    [list, '[::ffff:10.0.0.1]', undefined, 'allowed'],
    [list, '11.0.0.1', undefined, 'allowed'],
    [list, '172.16.0.1', undefined, 'private'],
    [list, '[fd12::1]', undefined, 'allowed'],
    [list, '[fe80::1]', undefined, 'private'],
    [list, '192.168.1.7', undefined, 'allowed'],
    [list, '192.168.1.8', undefined, 'private'],
    [list, '[::1]', undefined, 'allowed'],
    [list, 'db.internal', '172.16.0.1', 'allowed'],
    [list, 'DB.internal.', '172.16.0.1', 'allowed'],
    [list, 'xdb.internal', '172.16.0.1', 'private'],
    [list, 'a.db.internal', '172.16.0.1', 'private'],
    [list, 'a.svc.internal', '172.16.0.1', 'allowed'],
    [list, 'svc.internal', '172.16.0.1', 'private'],
    [list, 'any.example', '10.1.1.1', 'allowed'],
    [list, 'any.example', '172.16.0.1', 'private'],
  ];
  for (const [allow, host, address, expected] of verdicts) {
    const shown = `${host}${address === undefined ? '' : ` (${address})`}`;
    it(`return ${expected} for ${shown} with ${String(allow)}`, async () => {
      expect(await verdict(allow, host, address)).to.equal(expected);
    });
  }

  const metadata = [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    '169.254.0.23',
    '169.254.42.42',
    '100.96.0.96',
    '[fd00:ec2::254]',
    '[fd00:ec2::23]',
    '[fd20:ce::254]',
    '[fd00:42::42]',
    '[fe80::a9fe:a9fe]',
    '[::ffff:169.254.169.254]',
    '[::a9fe:a9fe]',
    '[64:ff9b::a9fe:a9fe]',
    '[64:ff9b:1::a83f:8110]',
    '[2002:a83f:8110::1]',
    '[2001:0:1:2:3:4:5601:5601]',
    '2852039166',
  ];
  for (const host of metadata) {
    it(`reject the metadata address ${host} whatever the setting`, async () => {
      const address = new URL(`http://${host}`).hostname.replace(/[[\]]/g, '');
      const all = ['0.0.0.0/0', '::/0', 'metadata.example'];
      for (const allow of [false, true, all]) {
        expect(await verdict(allow, host), String(allow)).to.equal('metadata');
        const named = await verdict(allow, 'metadata.example', address);
        expect(named, String(allow)).to.equal('metadata');
      }
    });

    it(`allow the metadata address ${host} if it is listed itself`, async () => {
      const address = new URL(`http://${host}`).hostname.replace(/[[\]]/g, '');
      expect(await verdict(['10.0.0.0/8', address], host)).to.equal('allowed');
      const all = address.includes(':') ? 128 : 32;
      expect(await verdict([`${address}/${all}`], 'any.example', address)).to.equal('allowed');
    });
  }

  it('distinguish hosts, addresses and networks from invalid entries', () => {
    for (const text of list) expect(parseHostEntry(text), text).to.not.equal(null);
    for (const text of ['a', 'xn--bcher-kva.example', 'bücher.example', 'a_b', '10.0.0.1/32']) {
      expect(parseHostEntry(text), text).to.not.equal(null);
    }
    const none = [
      ...['', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/x', '300.0.0.1'],
      ...['a/8', 'http://a', 'a:80', 'a b', '*', '*.', '.', 'a..b', '-a', 'a?b', 'user@a', '127.1'],
      ...['1', '0', 'yes', 'no', 'True', 'FALSE', 'on', 'off', 'fe80::1%eth0', '10.*'],
    ];
    for (const text of none) expect(parseHostEntry(text), text).to.equal(null);
  });
});

describe('a request to a private address', () => {
  const { server, caller } = callersHarness();

  for (const name of bothCallers) {
    it(`is rejected by ${name}, naming the setting`, async () => {
      const { origin, server: raw } = await server((_, socket) => socket.write(ok));
      const named = origin.replace('127.0.0.1', 'inside.example');
      const lookUpAll = namesAre({ 'inside.example': '127.0.0.1' });
      const client = caller(name, { allowPrivate: false, lookUpAll });
      const remedy = 'is a private address; to allow it, add it to SVC_HTTP_ALLOW_PRIVATE';
      expect((await client.call(origin)).error).to.equal(`127.0.0.1 ${remedy}`);
      expect((await client.call(named)).error).to.equal(`inside.example (127.0.0.1) ${remedy}`);
      expect(raw.requests).to.deep.equal([]);
    });

    it(`is made by ${name} if its name, address or network is listed`, async () => {
      const { origin } = await server((_, socket) => socket.write(ok));
      const named = origin.replace('127.0.0.1', 'inside.example');
      const lookUpAll = namesAre({ 'inside.example': '127.0.0.1' });
      for (const entry of ['inside.example', '127.0.0.1', '127.0.0.0/8']) {
        const client = caller(name, { allowPrivate: [entry], lookUpAll });
        expect(await client.call(named), entry).to.include({ status: 200 });
      }
    });

    it(`to a metadata service is rejected by ${name} even if all are allowed, naming the remedy`, async () => {
      const client = caller(name, {
        allowPrivate: true,
        lookUpAll: namesAre({ 'metadata.example': '168.63.129.16' }),
      });
      for (const host of [
        '169.254.169.254',
        '168.63.129.16',
        '[fd00:ec2::254]',
        'metadata.example',
      ]) {
        const { error, status } = await client.call(`http://${host}/latest/`);
        expect(status, host).to.equal(null);
        expect(error, host).to.match(
          /is a private address of a cloud's metadata service; to allow it, list that very address in SVC_HTTP_ALLOW_PRIVATE$/,
        );
      }
    });
  }
});

describe('a redirect', () => {
  const { server, caller } = callersHarness();

  for (const status of [307, 308]) {
    it(`with ${status} sends a body to the same origin only`, async () => {
      const there = await server((_, socket) => socket.write(ok));
      const { origin, server: here } = await server(({ line }, socket) => {
        if (line.includes('/end')) return void socket.write(ok);
        const to = line.includes('/away') ? there.origin : '/end';
        return void socket.write(
          `HTTP/1.1 ${status} There\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`,
        );
      });
      const client = caller('http.request');
      const args = {
        method: 'POST',
        body: { card: '4111' },
        headers: { authorization: 'a', 'content-language': 'en' },
      };
      expect((await client.call(`${origin}/away`, args)).text).to.equal('ok');
      const [away] = there.server.requests;
      expect(away).to.include({ line: 'POST / HTTP/1.1', body: '' });
      expect(away?.headers).to.include({ 'content-length': '0' });
      expect(away?.headers).not.to.have.any.keys('content-type', 'content-language');
      expect(away?.headers).not.to.have.any.keys('authorization', 'idempotency-key');
      expect((await client.call(`${origin}/stay`, args)).text).to.equal('ok');
      const end = here.requests.find(({ line }) => line.includes('/end'));
      expect(end).to.include({ line: 'POST /end HTTP/1.1', body: '{"card":"4111"}' });
      expect(end?.headers).to.include({ 'content-type': 'application/json', authorization: 'a' });
    });
  }

  it('to a metadata address is rejected even if private addresses are allowed', async () => {
    const { origin } = await server((_, socket) => {
      const to = 'http://169.254.169.254/latest/';
      socket.write(`HTTP/1.1 302 There\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`);
    });
    const { error } = await caller('http.request').call(origin);
    expect(error).to.match(/^169\.254\.169\.254 is a private address of a cloud's metadata/);
  });
});

describe('a message framing header', () => {
  const { server, caller } = callersHarness();

  it('cannot be sent, and the error says why', async () => {
    const { origin, server: raw } = await server((_, socket) => socket.write(ok));
    const refused: readonly (readonly [headers: object, says: RegExp])[] = [
      [
        { 'Transfer-Encoding': 'chunked' },
        /^header transfer-encoding cannot be sent: leave it out$/,
      ],
      [{ Expect: '100-continue' }, /^header expect cannot be sent/],
      [{ Upgrade: 'h2c' }, /^header upgrade cannot be sent/],
      [{ Connection: 'upgrade' }, /^header connection .* close or keep-alive$/],
      [
        { 'Content-Length': 7 },
        /^header content-length .* the body has 2 bytes; leave the header out$/,
      ],
    ];
    const client = caller('http.request');
    for (const [headers, says] of refused) {
      const { error } = await client.call(origin, { method: 'POST', body: 'xy', headers });
      expect(error).to.match(says);
    }
    const headers = { 'Content-Length': 2, Connection: 'close' };
    const { status } = await client.call(origin, { method: 'GET', body: 'xy', headers });
    expect(status).to.equal(200);
    expect(raw.requests.map(({ body }) => body)).to.deep.equal(['xy']);
  });
});
