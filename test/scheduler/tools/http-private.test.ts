import { expect } from 'chai';
import {
  isPrivateAddress,
  type AddressCheck,
  type LookUpAll,
} from '../../../scheduler/http/address-rules.ts';
import { httpHarness } from './http-harness.ts';

describe('the tool http.request without private addresses', () => {
  const { server, request } = httpHarness();

  const refused = [
    'http://127.0.0.1',
    'http://127.1',
    'http://2130706433',
    'http://0x7f.0.0.1',
    'http://0.0.0.0',
    'http://10.1.2.3',
    'http://172.16.0.1',
    'http://192.168.1.1',
    'http://169.254.169.254/latest/meta-data',
    'http://100.64.0.1',
    'http://[::1]',
    'http://[::]',
    'http://[fe80::1]',
    'http://[fc00::1]',
    'http://[::ffff:127.0.0.1]',
    'http://[::127.0.0.1]',
    'http://[::a00:1]',
    'http://[4000::1]',
    'http://[64:ff9b::7f00:1]',
    'http://[2002:7f00:1::]',
    'http://224.0.0.1',
    'http://255.255.255.255',
  ];
  for (const url of refused) {
    it(`rejects ${url}`, async () => {
      const { failure } = await request({ url }, { allowPrivate: false });
      expect(failure).to.include({ retryable: false });
      expect(failure?.error).to.match(/private address/);
    });
  }

  it('rejects a name that resolves to one, before it connects', async () => {
    const { origin, seen } = await server((_, response) => response.end());
    const { port } = new URL(origin);
    const asked: string[] = [];
    const lookUpAll: LookUpAll = (hostname, _options, callback) => {
      asked.push(hostname);
      callback(null, [
        { address: '93.184.215.14', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]);
    };
    const url = `http://harmless.example:${port}/`;
    const { failure } = await request({ url }, { allowPrivate: false, lookUpAll });
    expect(asked).to.deep.equal(['harmless.example']);
    expect(failure).to.include({ retryable: false });
    expect(failure?.error).to.match(/harmless\.example \(127\.0\.0\.1\) is a private address/);
    expect(seen).to.deep.equal([]);
  });

  it('rejects a redirect to one, by address or by name', async () => {
    const inner = await server((_, response) => response.end('private'));
    const { port } = new URL(inner.origin);
    const outer = await server(({ url }, response) => {
      const host = url === '/name' ? 'inner.example' : '127.0.0.2';
      response.writeHead(302, { location: `http://${host}:${port}/` });
      response.end();
    });
    // The outer server's address counts as public here.
    const isPrivate: AddressCheck = (address) => address !== '127.0.0.1';
    const lookUpAll: LookUpAll = (_hostname, _options, callback) => {
      callback(null, [{ address: '127.0.0.3', family: 4 }]);
    };
    const options = { allowPrivate: false, isPrivate, lookUpAll };
    for (const path of ['address', 'name']) {
      const { failure } = await request({ url: `${outer.origin}/${path}` }, options);
      expect(failure, path).to.include({ retryable: false });
      expect(failure?.error, path).to.match(/private address/);
    }
    expect(outer.seen).to.have.lengthOf(2);
    expect(inner.seen).to.deep.equal([]);
  });

  it('rejects localhost with the real resolver', async () => {
    const { failure } = await request({ url: 'http://localhost:1/' }, { allowPrivate: false });
    expect(failure?.error).to.match(/private address/);
  });

  it('may be retried when a name does not resolve', async () => {
    const lookUpAll: LookUpAll = (_hostname, _options, callback) => {
      callback(Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }), []);
    };
    const { failure } = await request(
      { url: 'http://name.example/' },
      { allowPrivate: false, lookUpAll },
    );
    expect(failure).to.include({ retryable: true });
  });

  it('recognizes public addresses', () => {
    for (const address of ['93.184.215.14', '8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8']) {
      expect(isPrivateAddress(address), address).to.equal(false);
    }
    expect(isPrivateAddress('no address')).to.equal(true);
  });
});
