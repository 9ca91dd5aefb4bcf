import { expect } from 'chai';
import { addressOf, clientAddress } from '../../../api/access/client-address.ts';
import { useRunningApi } from '../../support/running-api.ts';

const hops =
  (count: number) =>
  (_address: string, hop: number): boolean =>
    hop < count;
const proxies =
  (...trusted: readonly string[]) =>
  (address: string): boolean =>
    trusted.includes(address);

describe('the address of a client', () => {
  it('is the header entry without port and brackets, in canonical form', () => {
    const written: readonly (readonly [text: string, address: string | null])[] = [
      ['203.0.113.7', '203.0.113.7'],
      ['203.0.113.7:4711', '203.0.113.7'],
      ['203.0.113.7:_hidden', '203.0.113.7'],
      ['"203.0.113.7:4711"', '203.0.113.7'],
      ['2001:db8::7', '2001:db8::7'],
      ['2001:0DB8:0:0::7', '2001:db8::7'],
      ['[2001:db8::7]', '2001:db8::7'],
      ['[2001:DB8::7]:4711', '2001:db8::7'],
      ['"[2001:db8::7]:4711"', '2001:db8::7'],
      ['fe80::1%eth0', 'fe80::1'],
      ['::ffff:203.0.113.7', '203.0.113.7'],
      ['[::ffff:cb00:7107]:4711', '203.0.113.7'],
      ['unknown', null],
      ['_hidden', null],
      ['', null],
      ['203.0.113.7:4711:4712', null],
      ['[203.0.113.7]', null],
      ['203.0.113', null],
      ['example.org:80', null],
    ];
    expect(written.map(([text]) => [text, addressOf(text)])).to.deep.equal(written);
  });

  it("is the socket's address if no proxy is trusted", () => {
    expect(clientAddress('::ffff:10.0.0.1', '203.0.113.7', hops(0))).to.equal('10.0.0.1');
    expect(clientAddress(undefined, '203.0.113.7', hops(1))).to.equal(undefined);
  });

  it('is the entry written by the outermost trusted proxy', () => {
    const forwarded = '198.51.100.1:1, 203.0.113.7:2, 10.0.0.2:3';
    expect(clientAddress('10.0.0.1', forwarded, hops(1))).to.equal('10.0.0.2');
    expect(clientAddress('10.0.0.1', forwarded, hops(2))).to.equal('203.0.113.7');
    expect(clientAddress('10.0.0.1', forwarded, proxies('10.0.0.1', '10.0.0.2'))).to.equal(
      '203.0.113.7',
    );
    expect(clientAddress('10.0.0.1', '203.0.113.7:2, ,', hops(1))).to.equal('203.0.113.7');
    expect(clientAddress('10.0.0.1', ['198.51.100.1', '203.0.113.7:2'], hops(1))).to.equal(
      '203.0.113.7',
    );
  });

  it('is the address of the proxy if its entry holds none', () => {
    expect(clientAddress('10.0.0.1', 'unknown', hops(1))).to.equal('10.0.0.1');
    const forwarded = '198.51.100.1, anything, 10.0.0.2';
    expect(clientAddress('10.0.0.1', forwarded, hops(5))).to.equal('10.0.0.2');
  });
});

describe('a client behind a proxy that writes ports', () => {
  const ports = Array.from({ length: 12 }, (_, index) => 40_000 + index);
  const spellings = ports.map((port) => [
    `203.0.113.9:${port}`,
    port % 2 === 0 ? `[2001:db8::9]:${port}` : `2001:0db8:0:0:0:0:0:9`,
  ]);
  const entry = (index: number, column: 0 | 1): string => spellings[index]?.[column] ?? '';

  describe('is rate-limited by its address', () => {
    const api = useRunningApi({ trustProxy: 1, rateLimit: 3 });
    // The clock is set to the begin of a window, which does not end during a test.
    beforeEach(() => api().clock.shift(60_001 - (api().clock.now() % 60_000)));

    for (const column of [0, 1] as const) {
      it(`as ${entry(0, column)}`, async () => {
        const { client } = api().admin;
        const statuses: number[] = [];
        for (let index = 0; index < 4; index += 1) {
          const headers = { 'x-forwarded-for': entry(index, column) };
          statuses.push((await client.get('/tasks', { token: null, headers })).status);
        }
        expect(statuses).to.deep.equal([401, 401, 401, 429]);
      });
    }
  });

  describe('is slowed down by its address', () => {
    const api = useRunningApi({ trustProxy: 1 });

    it('after ten wrong secrets', async () => {
      const { client, id } = { client: api().admin.client, id: api().admin.id };
      const body = { agent_id: id, agent_secret: 'x'.repeat(20) };
      const statuses: number[] = [];
      for (let index = 0; index < 11; index += 1) {
        const headers = { 'x-forwarded-for': entry(index, 0) };
        const path = '/agents/auth/token';
        statuses.push((await client.post(path, body, { token: null, headers })).status);
      }
      expect(statuses.slice(9)).to.deep.equal([429, 429]);
    });

    it('and is recorded in the audit without its port', async () => {
      const { client } = api().admin;
      const agent = await api().signIn([]);
      const headers = { 'x-forwarded-for': '[2001:DB8::7]:4711' };
      expect((await agent.client.get('/tasks', { headers })).status).to.equal(403);
      await api().refusals.flush();
      const after = await api().store.head();
      const { json } = await client.get(`/audit?actor=${agent.id}&after=${after}`);
      expect(json['items']).to.have.nested.property('0.source', '2001:db8::7');
    });
  });
});
