import { expect } from 'chai';
import express, {
  Router,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import fc from 'fast-check';
import { DirectRoutes } from '../../extensions/host/routes/direct-routes.ts';

const methods = ['get', 'post', 'delete'] as const;
const ways = [
  'answers',
  'next',
  'leaves the route',
  'leaves the router',
  'throws',
  'rejects',
] as const;

/** A registration with a router. */
interface Registration {
  readonly by: (typeof methods)[number] | 'use' | 'all' | 'route' | 'error' | 'param';
  readonly path: string;
  readonly ways: readonly (typeof ways)[number][];
}

interface SentRequest {
  readonly method: string;
  readonly path: string;
}

/** The result of a request: which handlers received it, with what, and how it ended. */
type Trace = readonly string[];

/** A handler that records its call in the trace, and then ends in the given way. */
function handlerOf(name: string, way: (typeof ways)[number], trace: string[]): RequestHandler {
  return (request, _response, next) => {
    const route = (request.route as { readonly path?: unknown } | undefined)?.path;
    const { url, baseUrl } = request;
    trace.push(JSON.stringify([name, route, { ...request.params }, baseUrl, url]));
    if (way === 'answers') trace.push('answered');
    else if (way === 'next') next();
    else if (way === 'leaves the route') next('route');
    else if (way === 'leaves the router') next('router');
    else if (way === 'throws') throw new Error(`thrown by ${name}`);
    else return Promise.reject(new Error(`rejected by ${name}`));
    return undefined;
  };
}

function register(router: Router, all: readonly Registration[], trace: string[]): void {
  for (const [at, { by, path, ways: each }] of all.entries()) {
    const handlers = each.map((way, n) => handlerOf(`${at}.${n}`, way, trace));
    if (by === 'param') {
      router.param('id', (_request, _response, next: NextFunction, id: string) => {
        trace.push(`param ${at} ${id}`);
        next();
      });
    } else if (by === 'error') {
      router.use((error: Error, _request: Request, _response: Response, next: NextFunction) => {
        trace.push(`${at} handles: ${error.message}`);
        next(error);
      });
    } else if (by === 'route') {
      router.route(path).get(...handlers);
    } else {
      router[by](path, ...handlers);
    }
  }
}

type Serve = (request: Request, response: Response, next: NextFunction) => void;

/** Calls without a server: Express extends requests by their prototype. */
async function ask(serve: Serve, { method, path }: SentRequest, trace: string[]): Promise<Trace> {
  const app = express();
  const request = Object.create(app.request, {
    method: { value: method, writable: true },
    url: { value: path, writable: true },
    baseUrl: { value: '/ext/it', writable: true },
    params: { value: {}, writable: true },
  }) as Request;
  const response = Object.create(app.response, { setHeader: { value: () => {} } }) as Response;
  await new Promise<void>((ended) => {
    const watched = trace as string[] & { onAnswer?: () => void };
    const push = trace.push.bind(trace);
    watched.push = (...said) => {
      const length = push(...said);
      if (said.includes('answered')) ended();
      return length;
    };
    serve(request, response, (error?: unknown) => {
      push(error instanceof Error ? `error: ${error.message}` : `nobody: ${String(error)}`);
      ended();
    });
  });
  return trace;
}

/** The results of a router alone, and of one whose routes are called directly. */
async function both(
  all: readonly Registration[],
  sent: SentRequest,
): Promise<readonly [Trace, Trace]> {
  const plainly: string[] = [];
  const alone = Router();
  register(alone, all, plainly);
  const directly: string[] = [];
  const router = Router();
  const direct = new DirectRoutes(router);
  register(router, all, directly);
  const path = sent.path.split('?')[0] ?? '';
  return [
    await ask(alone, sent, plainly),
    await ask((...given) => direct.serve(path, ...given), sent, directly),
  ];
}

const route = (by: Registration['by'], path: string, ...each: Registration['ways'][number][]) => ({
  by,
  path,
  ways: each.length === 0 ? (['answers'] as const) : each,
});

describe('routes of an extension that are called without its router', () => {
  it('call the handlers, with parameters and route as the router sets them', async () => {
    const all = [route('get', '/items'), route('get', '/items/:id/parts/:part')];
    for (const [path, name] of [
      ['/items?a=1', '0.0'],
      ['/items/7/parts/x.y', '1.0'],
      ['/ITEMS/7/Parts/x', '1.0'],
      ['/Items', '0.0'],
    ] as const) {
      const [plainly, directly] = await both(all, { method: 'GET', path });
      expect(directly, path).to.deep.equal(plainly);
      expect(directly[0]).to.include(name);
      expect(directly.at(-1)).to.equal('answered');
    }
  });

  it('are found without a search by the router', async () => {
    const router = Router();
    const direct = new DirectRoutes(router);
    const trace: string[] = [];
    register(router, [route('get', '/plain'), route('get', '/of/:id')], trace);
    router.stack.length = 0;
    const serve: Serve = (...given) => direct.serve(given[0].url, ...given);
    for (const path of ['/plain', '/of/1']) await ask(serve, { method: 'GET', path }, trace);
    expect(
      trace.filter((each) => each === 'answered'),
      trace.join(),
    ).to.have.length(2);
    // A path in another spelling is left to the router, which has been emptied.
    expect((await ask(serve, { method: 'GET', path: '/Plain' }, trace)).at(-1)).to.include(
      'nobody',
    );
  });

  it('continue with later handlers when a handler calls next or fails', async () => {
    const all = [
      route('get', '/a', 'next', 'next'),
      route('get', '/:id', 'throws'),
      route('use', '/', 'next'),
      route('error', '/'),
    ];
    const [plainly, directly] = await both(all, { method: 'GET', path: '/a' });
    expect(directly).to.deep.equal(plainly);
    expect(directly).to.have.length(5);
    expect(directly.slice(-2)).to.deep.equal(['3 handles: thrown by 1.0', 'error: thrown by 1.0']);
  });

  it('behave like the router alone, whatever is registered and requested', async () => {
    const paths = [
      ...['/', '/a', '/A', '/a/b', '/:id', '/a/:id', '/:id/b', '/:id/:more', '/a{/:id}', '/*rest'],
    ];
    const registered = fc.record({
      by: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom(...methods) },
        { weight: 1, arbitrary: fc.constantFrom('use', 'all', 'route', 'error', 'param') },
      ),
      path: fc.constantFrom(...paths),
      ways: fc.array(fc.constantFrom(...ways), { minLength: 1, maxLength: 3 }),
    }) as fc.Arbitrary<Registration>;
    const sent = fc.record({
      method: fc.constantFrom('GET', 'POST', 'DELETE', 'HEAD', 'PUT'),
      path: fc.constantFrom(
        ...['/', '/a', '/A', '/a/', '/a/b', '/A/b', '/a/B', '/x', '/a%20b', '/a/%62', '/a/b/c'],
        ...['/a?b=c', '//', '/a//b', '/a/b/', '/%zz', '/a/%zz'],
      ),
    });
    const law = fc.asyncProperty(
      fc.array(registered, { minLength: 1, maxLength: 6 }),
      sent,
      async (all, one) => {
        const [plainly, directly] = await both(all, one);
        expect(directly).to.deep.equal(plainly);
      },
    );
    await fc.assert(law, { numRuns: 500 });
  });
});
