import { expect } from 'chai';
import type { Span } from '../../../observability/telemetry.ts';
import { createHttpTool } from '../../../scheduler/tools/http-request.ts';
import type { LookUpAll } from '../../../scheduler/http/address-rules.ts';
import type { Tool } from '../../../scheduler/tools/tool.ts';
import { execute } from '../pipeline/pipeline-execution-harness.ts';
import { httpHarness } from './http-harness.ts';

describe('a secret in an HTTP request', () => {
  const { server, request } = httpHarness();

  it('is masked when a server escapes more of JSON than necessary', async () => {
    const { origin } = await server(({ body }, response) => {
      const written = JSON.stringify({ error: `bad ${body}` }).replaceAll('/', '\\/');
      response.writeHead(422).end(written.replaceAll('+', '\\u002B'));
    });
    const args = { url: origin, method: 'POST', body: '${secrets.KEY}' };
    const { failure } = await request(args, { secrets: { KEY: 'wJalrXUtnFEMI/K7+MDENG' } });
    expect(failure?.error).to.equal(`POST ${origin}/ answered 422: {"error":"bad ***"}`);
  });

  describe('in a host name', () => {
    const fails: LookUpAll = (hostname, _options, callback) => {
      const error = new Error(`getaddrinfo ENOTFOUND ${hostname}`);
      callback(Object.assign(error, { code: 'ENOTFOUND', hostname }), []);
    };
    const isInside: LookUpAll = (_hostname, _options, callback) =>
      callback(null, [{ address: '10.0.0.7', family: 4 }]);
    const refused = 'is a private address; to allow it, add it to SVC_HTTP_ALLOW_PRIVATE';
    const cases: readonly (readonly [url: string, error: string])[] = [
      ['http://${secrets.NAME}.invalid/', 'GET http://***.invalid/ failed: ENOTFOUND'],
      ['http://${secrets.SHORT}.invalid/', 'GET http://***.invalid/ failed: ENOTFOUND'],
      ['http://${secrets.PATH}', 'GET http://***/ failed: ENOTFOUND'],
      ['${secrets.URL}', 'GET *** failed: ENOTFOUND'],
      [
        'http://known.invalid/',
        'GET http://known.invalid/ failed: getaddrinfo ENOTFOUND known.invalid',
      ],
    ];
    const secrets = {
      NAME: 'MySecretTenantQ7',
      SHORT: 'TenantQ',
      PATH: 'AbCd/K7MDENG/bPxRfiCYEXAMPLEKEY',
      URL: 'http://hooks.invalid/services/T00',
    };
    for (const [url, error] of cases) {
      it(`is fully masked when ${url} fails`, async () => {
        const { failure } = await request(
          { url },
          { secrets, allowPrivate: false, lookUpAll: fails },
        );
        expect(failure?.error).to.equal(error);
      });
    }

    it('is masked when a redirect leads to it', async () => {
      const location = `http://${secrets.NAME.toLowerCase()}.invalid/`;
      const { origin } = await server((_, response) => response.writeHead(302, { location }).end());
      const headers = { 'x-key': '${secrets.NAME}' };
      const options = { secrets, allowPrivate: false, isPrivate: () => false, lookUpAll: fails };
      const { failure } = await request({ url: origin, headers }, options);
      expect(failure?.error).to.equal('GET http://***.invalid/ failed: ENOTFOUND');
    });

    it('is masked when the host redirects to itself', async () => {
      const { origin } = await server(({ url, headers: { host } }, response) => {
        const location = `http://${host ?? ''}/end`;
        return url === '/end'
          ? response.writeHead(400).end()
          : response.writeHead(302, { location }).end();
      });
      const isHere: LookUpAll = (_hostname, _options, callback) =>
        callback(null, [{ address: '127.0.0.1', family: 4 }]);
      const options = { secrets, allowPrivate: false, isPrivate: () => false, lookUpAll: isHere };
      const there = origin.replace('127.0.0.1', '${secrets.SHORT}.invalid');
      const { failure } = await request({ url: there }, options);
      const shown = origin.replace('127.0.0.1', '***.invalid');
      expect(failure?.error).to.equal(`GET ${shown}/end answered 400`);
    });

    it('is masked, with its address, when that is private', async () => {
      const options = { secrets, allowPrivate: false, lookUpAll: isInside };
      const { failure } = await request({ url: 'http://${secrets.SHORT}.invalid/' }, options);
      expect(failure?.error).to.equal(`***.invalid ${refused}`);
      const { failure: known } = await request({ url: 'http://known.invalid/' }, options);
      expect(known?.error).to.equal(`known.invalid (10.0.0.7) ${refused}`);
      const secret = { ...options, secrets: { SHORT: '0x0a.7' } };
      const { failure: itself } = await request({ url: 'http://${secrets.SHORT}/' }, secret);
      expect(itself?.error).to.equal(`*** ${refused}`);
    });

    it('is in no span', async () => {
      const { origin, seen } = await server(({ url }, response) =>
        url === '/first' ? response.writeHead(302, { location: secret }).end() : response.end(),
      );
      const secret = `${origin.replace('127.0.0.1', 'localhost')}/end`;
      const addresses: unknown[] = [];
      const span: Span = {
        traceparent: '',
        headers: {},
        child: (_, options) => {
          addresses.push(options?.attributes?.['server.address']);
          return span;
        },
        rename() {},
        set() {},
        fail() {},
        end() {},
        within: (call) => call(),
      };
      const { tool, close } = createHttpTool({ allowPrivate: true });
      const traced: Tool = {
        ...tool,
        run: (args, call) => tool.run(args, { ...call, signal: call.signal, span }),
      };
      for (const url of [origin, '${secrets.URL}', `${origin}/first`]) {
        const headers = { 'x-url': '${secrets.URL}' };
        const pipeline = [{ uses: 'http.request', with: { url, headers } }];
        const tools = { 'http.request': traced };
        await execute({ pipeline, tools, secrets: { URL: secret } });
      }
      await close();
      expect(seen).to.have.length(4);
      expect(addresses).to.deep.equal(['127.0.0.1', '***', '127.0.0.1', '***']);
    });
  });
});
