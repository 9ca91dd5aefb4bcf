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
  'goes on',
  'leaves the route',
  'leaves the router',
  'throws',
  'rejects',
] as const;

/** One thing that is registered with a router. */
interface Registered {
  readonly by: (typeof methods)[number] | 'use' | 'all' | 'route' | 'error' | 'param';
  readonly path: string;
  readonly ways: readonly (typeof ways)[number][];
}

interface Asked {
  readonly method: string;
  readonly path: string;
}

/** What has become of a request: who had it, with what, and how it ended. */
type Told = readonly string[];

/** A handler that tells of itself, and does as it is said. */
function handlerOf(name: string, way: (typeof ways)[number], told: string[]): RequestHandler {
  return (request, _response, next) => {
    const route = (request.route as { readonly path?: unknown } | undefined)?.path;
    const { url, baseUrl } = request;
    told.push(JSON.stringify([name, route, { ...request.params }, baseUrl, url]));
    if (way === 'answers') told.push('answered');
    else if (way === 'goes on') next();
    else if (way === 'leaves the route') next('route');
    else if (way === 'leaves the router') next('router');
    else if (way === 'throws') throw new Error(`thrown by ${name}`);
    else return Promise.reject(new Error(`rejected by ${name}`));
    return undefined;
  };
}

function register(router: Router, all: readonly Registered[], told: string[]): void {
  for (const [at, { by, path, ways: each }] of all.entries()) {
    const handlers = each.map((way, n) => handlerOf(`${at}.${n}`, way, told));
    if (by === 'param') {
      router.param('id', (_request, _response, next: NextFunction, id: string) => {
        told.push(`param ${at} ${id}`);
        next();
      });
    } else if (by === 'error') {
      router.use((error: Error, _request: Request, _response: Response, next: NextFunction) => {
        told.push(`${at} is told: ${error.message}`);
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

/** Asks without a server: what Express adds to a request is made of its prototype. */
async function ask(serve: Serve, { method, path }: Asked, told: string[]): Promise<Told> {
  const app = express();
  const request = Object.create(app.request, {
    method: { value: method, writable: true },
    url: { value: path, writable: true },
    baseUrl: { value: '/ext/it', writable: true },
    params: { value: {}, writable: true },
  }) as Request;
  const response = Object.create(app.response, { setHeader: { value: () => {} } }) as Response;
  await new Promise<void>((ended) => {
    const watched = told as string[] & { onAnswer?: () => void };
    const push = told.push.bind(told);
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
  return told;
}

/** What becomes of a request by a router alone, and by one whose plain routes are gone to directly. */
async function both(all: readonly Registered[], asked: Asked): Promise<readonly [Told, Told]> {
  const plainly: string[] = [];
  const alone = Router();
  register(alone, all, plainly);
  const directly: string[] = [];
  const router = Router();
  const direct = new DirectRoutes(router);
  register(router, all, directly);
  const path = asked.path.split('?')[0] ?? '';
  return [
    await ask(alone, asked, plainly),
    await ask((...given) => direct.serve(path, ...given), asked, directly),
  ];
}

const route = (by: Registered['by'], path: string, ...each: Registered['ways'][number][]) => ({
  ...{ by, path },
  ways: each.length === 0 ? (['answers'] as const) : each,
});

describe('routes of an extension that are gone to without its router', () => {
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

  it('are not looked for by the router', async () => {
    const router = Router();
    const direct = new DirectRoutes(router);
    const told: string[] = [];
    register(router, [route('get', '/plain'), route('get', '/of/:id')], told);
    router.stack.length = 0;
    const serve: Serve = (...given) => direct.serve(given[0].url, ...given);
    for (const path of ['/plain', '/of/1']) await ask(serve, { method: 'GET', path }, told);
    expect(
      told.filter((each) => each === 'answered'),
      told.join(),
    ).to.have.length(2);
    // Another writing of it is the router's, which has been emptied.
    expect((await ask(serve, { method: 'GET', path: '/Plain' }, told)).at(-1)).to.include('nobody');
  });

  it('have what a handler lets go on, or fails with, go through all that stands behind it', async () => {
    const all = [
      route('get', '/a', 'goes on', 'goes on'),
      route('get', '/:id', 'throws'),
      route('use', '/', 'goes on'),
      route('error', '/'),
    ];
    const [plainly, directly] = await both(all, { method: 'GET', path: '/a' });
    expect(directly).to.deep.equal(plainly);
    expect(directly).to.have.length(5);
    expect(directly.slice(-2)).to.deep.equal(['3 is told: thrown by 1.0', 'error: thrown by 1.0']);
  });

  it('come to what the router alone comes to, whatever is registered and asked for', async () => {
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
    }) as fc.Arbitrary<Registered>;
    const asked = fc.record({
      method: fc.constantFrom('GET', 'POST', 'DELETE', 'HEAD', 'PUT'),
      path: fc.constantFrom(
        ...['/', '/a', '/A', '/a/', '/a/b', '/A/b', '/a/B', '/x', '/a%20b', '/a/%62', '/a/b/c'],
        ...['/a?b=c', '//', '/a//b', '/a/b/', '/%zz', '/a/%zz'],
      ),
    });
    const law = fc.asyncProperty(
      fc.array(registered, { minLength: 1, maxLength: 6 }),
      asked,
      async (all, one) => {
        const [plainly, directly] = await both(all, one);
        expect(directly).to.deep.equal(plainly);
      },
    );
    await fc.assert(law, { numRuns: 500 });
  });
});
