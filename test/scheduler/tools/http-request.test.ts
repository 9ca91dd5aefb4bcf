import { expect } from 'chai';
import { Signal, eventually } from '../../support/signals.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { httpHarness, serve } from './http-harness.ts';

describe('the tool http.request', () => {
  const { server, request } = httpHarness();

  it('returns status, headers and parsed JSON', async () => {
    const { origin, seen } = await server((_, response) => {
      response.setHeader('content-type', 'application/json; charset=utf-8');
      response.setHeader('x-two', ['a', 'b']);
      response.end('{"ok":[1,true]}');
    });
    const { answered } = await request({ url: `${origin}/x?a=1`, query: { b: 'c d', e: [1, 2] } });
    expect(answered.status).to.equal(200);
    expect(answered.headers['x-two']).to.equal('a, b');
    expect(answered.body).to.deep.equal({ ok: [1, true] });
    expect(seen[0]).to.include({ method: 'GET', url: '/x?a=1&b=c+d&e=1&e=2', body: '' });
  });

  it('keeps numbers that JavaScript cannot represent as strings, with a warning', async () => {
    const { origin } = await server((_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end('{"id":7615917337495251231,"n":[1.50,1e400],"fine":9007199254740991}');
    });
    const { answered } = await request({ url: origin });
    expect(answered).to.deep.include({
      body: { id: '7615917337495251231', n: [1.5, '1e400'], fine: 9007199254740991 },
      warnings: [
        'body.id: kept 7615917337495251231 as a string; JavaScript cannot represent this number',
        'body.n.1: kept 1e400 as a string; JavaScript cannot represent this number',
      ],
    });
  });

  it('has no warnings when every number is exact', async () => {
    const { origin } = await server((_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end('{"id":"7615917337495251231","n":1e20}');
    });
    const { answered } = await request({ url: origin });
    expect(answered).not.to.have.property('warnings');
    expect(answered.body).to.deep.equal({ id: '7615917337495251231', n: 1e20 });
  });

  it('sends objects as JSON, strings unchanged, and the idempotency key', async () => {
    const { origin, seen } = await server((_, response) => response.end());
    await request({ url: origin, method: 'post', body: { a: 'ü' } });
    await request({ url: origin, method: 'PUT', body: 'plain', headers: { 'X-N': 5 } });
    await request({ url: origin, headers: { 'Idempotency-Key': 'own' } });
    await request({ url: origin }, { step: { id: 'größe 1' } });
    expect(seen.map(({ method, body }) => [method, body])).to.deep.equal([
      ['POST', '{"a":"ü"}'],
      ['PUT', 'plain'],
      ['GET', ''],
      ['GET', ''],
    ]);
    expect(seen[0]?.headers['content-type']).to.equal('application/json');
    expect(seen[1]?.headers['x-n']).to.equal('5');
    expect(seen.map(({ headers }) => headers['idempotency-key'])).to.deep.equal([
      'run-1:step_0',
      'run-1:step_0',
      'own',
      'run-1:gr%C3%B6%C3%9Fe%201',
    ]);
  });

  const bodies: readonly (readonly [
    what: string,
    type: string,
    sent: string | Buffer,
    got: unknown,
  ])[] = [
    ['text as text', 'text/plain', 'hällo', 'hällo'],
    ['broken JSON as text', 'application/json', '{', '{'],
    ['other JSON types parsed', 'application/problem+json', '[1]', [1]],
    ['nothing as null', 'text/plain', '', null],
    [
      'text of another charset as text',
      'text/plain; charset="ISO-8859-1"',
      Buffer.from('caf\u00e9', 'latin1'),
      'caf\u00e9',
    ],
    [
      'JSON of another charset parsed',
      'application/json;charset=ISO-8859-15',
      Buffer.from('{"price":"5 \u00a4"}', 'latin1'),
      { price: '5 €' },
    ],
    [
      'text of an unknown charset as Base64',
      'text/plain; charset=nothing',
      Buffer.from([0xff, 0, 1]),
      '/wAB',
    ],
    ['bytes as Base64', 'image/png', Buffer.from([0xff, 0, 1]), '/wAB'],
  ];
  for (const [what, type, sent, got] of bodies) {
    it(`returns ${what}`, async () => {
      const { origin } = await server((_, response) => {
        response.setHeader('content-type', type);
        response.end(sent);
      });
      expect((await request({ url: origin })).answered.body).to.deep.equal(got);
    });
  }

  const statuses: readonly (readonly [status: number, retryable: boolean])[] = [
    [400, false],
    [404, false],
    [408, true],
    [409, false],
    [425, true],
    [429, true],
    [500, true],
    [503, true],
  ];
  for (const [status, retryable] of statuses) {
    it(`fails on ${status}, which ${retryable ? 'is' : 'is not'} retried`, async () => {
      const { origin } = await server((_, response) => {
        response.statusCode = status;
        response.end('because');
      });
      const { failure } = await request({ url: `${origin}/p?token=x` });
      expect(failure).to.include({ retryable });
      expect(failure?.error).to.equal(`GET ${origin}/p answered ${status}: because`);
    });
  }

  it('accepts the expected statuses', async () => {
    const { origin } = await server(({ url }, response) => {
      response.statusCode = Number(url.slice(1));
      response.setHeader('location', '/200');
      response.end();
    });
    const status = async (path: number, expect_status: unknown): Promise<number | undefined> =>
      (await request({ url: `${origin}/${path}`, expect_status })).answered?.status;
    expect(await status(404, 404)).to.equal(404);
    expect(await status(404, ['2xx', '4xx'])).to.equal(404);
    expect(await status(302, 302)).to.equal(302);
    expect(await status(302, 200)).to.equal(200);
    expect(await status(200, [201, '3xx'])).to.equal(undefined);
  });

  it('honours Retry-After, in seconds and as a date', async () => {
    const clock = new VirtualClock('2026-01-01T00:00:00Z');
    const { origin } = await server(({ url }, response) => {
      response.statusCode = 429;
      response.setHeader('retry-after', url === '/s' ? '90' : 'Thu, 01 Jan 2026 00:02:00 GMT');
      response.end();
    });
    const seconds = await request({ url: `${origin}/s` }, { clock });
    expect(seconds.failure).to.include({ retryable: true, retryAfterMs: 90_000 });
    const date = await request({ url: `${origin}/d` }, { clock });
    expect(date.failure).to.include({ retryable: true, retryAfterMs: 120_000 });
  });

  it('fails, and may be retried, without a response', async () => {
    const { origin, server: gone } = await serve((_, response) => response.end());
    await new Promise((resolve) => gone.close(resolve));
    const { failure } = await request({ url: origin });
    expect(failure?.retryable).to.equal(true);
    expect(failure?.error).to.match(/^GET http:\/\/127\.0\.0\.1:\d+\/ failed: /);
  });

  it('closes an idle connection long before the server would', async () => {
    const { origin, server: kept } = await server((_, response) => response.end('{}'));
    kept.keepAliveTimeout = 600_000;
    const closed = new Signal<void>('the end of a connection');
    kept.on('connection', (socket) => socket.once('close', () => closed.send()));
    await request({ url: origin });
    await closed.wait();
  });

  it('fails, and may be retried, when the response breaks off', async () => {
    const { origin } = await server((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('part');
      response.socket?.end();
    });
    expect((await request({ url: origin })).failure).to.include({ retryable: true });
  });

  for (const url of ['ftp://example.com', 'file:///etc/passwd', 'nonsense', 'http://']) {
    it(`rejects ${url}`, async () => {
      const { failure } = await request({ url });
      expect(failure).to.include({ retryable: false });
    });
  }

  it('rejects invalid headers', async () => {
    const { failure } = await request({ url: 'http://127.0.0.1:1', headers: { 'a b': '1' } });
    expect(failure).to.include({ retryable: false });
  });

  const unsendable: readonly (readonly [string, object, RegExp])[] = [
    [
      'a content-length that differs from the body',
      { body: 'abc', headers: { 'content-length': 9 } },
      /length/,
    ],
    ['an invalid escape in the password', { url: 'http://a:50%@a.example/' }, /invalid % escape/],
  ];
  for (const [what, args, error] of unsendable) {
    it(`does not retry ${what}`, async () => {
      const { origin } = await server((_, response) => response.end());
      const { failure } = await request({ url: origin, method: 'POST', ...args });
      expect(failure?.error).to.match(error);
      expect(failure?.retryable).to.equal(false);
    });
  }

  it('reads at most 1 MiB of a response, and keeps 256 KiB', async () => {
    let closed = false;
    const { origin } = await server((_, response) => {
      response.on('close', () => (closed = true));
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    const { answered } = await request({ url: origin });
    expect(answered).to.include({ status: 200, truncated: true });
    expect(JSON.stringify(answered).length).to.be.lessThan(256 * 1024);
    await eventually(() => closed);
  });

  it('stops at its timeout', async () => {
    const clock = new VirtualClock();
    let closed = false;
    const arrived = server((_, response) => {
      response.on('close', () => (closed = true));
      void clock.advance(5000);
    });
    const { origin } = await arrived;
    const { failure } = await request({ url: origin }, { clock, step: { timeout_seconds: 5 } });
    expect(failure).to.include({ retryable: true });
    expect(failure?.error).to.match(/timed out after 5 s/);
    await eventually(() => closed);
  });

  it('stops with the run', async () => {
    const controller = new AbortController();
    const { origin } = await server(() => controller.abort(new Error('canceled')));
    const { result } = await request({ url: origin }, { signal: controller.signal });
    expect(result.kind).to.equal('aborted');
  });

  it('sends secrets, and masks those in the response', async () => {
    const { origin, seen } = await server(({ headers }, response) => {
      response.setHeader('x-echo', String(headers['authorization']));
      response.end(JSON.stringify(headers));
    });
    const headers = { authorization: 'Bearer ${secrets.KEY}' };
    const { answered } = await request({ url: origin, headers });
    expect(seen[0]?.headers.authorization).to.equal('Bearer s3cret');
    expect(answered.headers['x-echo']).to.equal('Bearer ***');
    expect(JSON.stringify(answered)).not.to.include('s3cret');
  });

  it('shows no part of a secret, however the URL is written and the response is cut', async () => {
    const { origin } = await server(({ url }, response) => {
      const location = '/moved/to%20ken@1?wait=no';
      if (url.startsWith('/first')) return response.writeHead(307, { location }).end();
      return response.writeHead(400).end(`${'y'.repeat(480)}to ken@1, and behind it`);
    });
    const secrets = {
      TOKEN: 'to ken@1',
      HOOK: `${origin}/hook/to ken@1?wait=true`,
      LONG: `${'x'.repeat(190)}to ken@1${'x'.repeat(190)}`,
    };
    const cut = `${'y'.repeat(480)}***, and behind it`;
    const cases: readonly (readonly [string, string])[] = [
      [`${origin}/\${secrets.TOKEN}?\${secrets.TOKEN}`, `GET ${origin}/*** answered 400: ${cut}`],
      ['${secrets.HOOK}', `GET *** answered 400: ${cut}`],
      [`${origin}/first/\${secrets.TOKEN}`, `GET ${origin}/moved/*** answered 400: ${cut}`],
      ['/${secrets.LONG}', '/*** is not an http or https URL'],
    ];
    for (const [url, error] of cases) {
      // The token is a part of the other secrets, and is also known on its own.
      const headers = { 'x-token': '${secrets.TOKEN}' };
      const { failure } = await request({ url, headers }, { secrets });
      expect(failure?.error).to.equal(error);
    }
  });

  it('turns credentials in the URL into a header', async () => {
    const { origin, seen } = await server((_, response) => response.end());
    await request({ url: origin.replace('//', '//me:p%40ss@') });
    const basic = Buffer.from('me:p@ss').toString('base64');
    expect(seen[0]?.headers.authorization).to.equal(`Basic ${basic}`);
  });

  describe('when it is redirected', () => {
    it('follows, with the method and body that the status requires', async () => {
      const { origin, seen } = await server(({ url }, response) => {
        if (url === '/end') return response.end('here');
        response.writeHead(Number(url.slice(1)), { location: 'end' });
        return response.end();
      });
      for (const status of [301, 302, 303, 307, 308]) {
        seen.length = 0;
        const { answered } = await request({
          url: `${origin}/${status}`,
          method: 'POST',
          body: { a: 1 },
          headers: { authorization: 'mine' },
        });
        expect(answered.body, String(status)).to.equal('here');
        const kept = status >= 307;
        expect(seen[1], String(status)).to.include({
          method: kept ? 'POST' : 'GET',
          url: '/end',
          body: kept ? '{"a":1}' : '',
        });
        expect(seen[1]?.headers.authorization).to.equal('mine');
        expect(seen[1]?.headers['content-type']).to.equal(kept ? 'application/json' : undefined);
      }
    });

    it("does not wait for the end of a redirect's body", async () => {
      const left = new Signal<true>('the end of the first connection');
      const { origin, seen } = await server(({ url }, response) => {
        if (url === '/end') return response.end('here');
        response.on('close', () => left.send(true));
        response.writeHead(302, { location: '/end' });
        return response.write('this goes on for ever');
      });
      const { answered } = await request({ url: origin });
      expect(answered.body).to.equal('here');
      expect(seen).to.have.lengthOf(2);
      await left.wait();
    });

    it('reads the location as UTF-8', async () => {
      const { origin, seen } = await server(({ url }, response) => {
        if (url !== '/') return response.end('here');
        const location = Buffer.from('/caf\u00e9', 'utf8').toString('latin1');
        return response.writeHead(302, { location }).end();
      });
      const { answered } = await request({ url: origin });
      expect(answered.body).to.equal('here');
      expect(seen[1]?.url).to.equal('/caf%C3%A9');
    });

    it('stops after five', async () => {
      const { origin, seen } = await server((_, response) => {
        response.writeHead(302, { location: '/again' });
        response.end();
      });
      const { failure } = await request({ url: origin });
      expect(failure?.error).to.match(/more than 5 redirects/);
      expect(seen).to.have.lengthOf(6);
    });

    it('sends no credentials to another origin', async () => {
      const other = await server((_, response) => response.end('there'));
      const { origin } = await server((_, response) => {
        response.writeHead(307, { location: other.origin });
        response.end();
      });
      const headers = {
        authorization: 'a',
        cookie: 'b',
        'x-api-key': 'c',
        accept: 'text/plain',
      };
      const { answered } = await request({ url: origin, headers });
      expect(answered.body).to.equal('there');
      const names = Object.keys(other.seen[0]?.headers ?? {});
      expect(names).not.to.include.members(['authorization']);
      expect(names).to.have.members([
        'accept',
        'accept-encoding',
        'connection',
        'host',
        'user-agent',
      ]);
    });
  });
});
