import type { NextFunction, Request, RequestHandler, Response, Router } from 'express';
import { toError, wrapHandlers, wrapRoute, isPromise } from './handler-errors.ts';

const VERBS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** Methods that may register handlers for any method or path. */
const OTHER_METHODS = ['use', 'all', 'route', 'options', 'head'] as const;

/** Paths without any pattern syntax. */
const LITERAL_PATH = /^(?:\/|(?:\/[\w.~-]+)+)$/;
/** Paths whose parameters each span a whole segment. */
const PARAMETER_PATH = /^(?:\/(?::[A-Za-z_]\w*|[\w.~-]+))+$/;

/** A literal segment in lower case, as Express ignores case, or a parameter. */
type Segment = { readonly literal: string } | { readonly parameter: string };

/** A route that can be called without the router. */
interface DirectRoute {
  /** The route in Express, which sets it as `request.route`. */
  readonly route: unknown;
  readonly handlers: readonly RequestHandler[];
  readonly segments: readonly Segment[];
}

/** A direct route whose handlers called `next`, with the value they skipped. */
interface SkippedRoute {
  readonly direct: DirectRoute;
  readonly error: unknown;
}

/** A request passing through the handlers of a direct route. */
interface RouteCall {
  readonly direct: DirectRoute;
  readonly request: Request;
  readonly response: Response;
  /** Continues after the router. */
  readonly next: NextFunction;
}

const NO_PARTS: readonly string[] = [];

type Register = (...args: readonly unknown[]) => Router;
type Route = ReturnType<Router['route']>;

/**
 * Calls handlers of an Express router directly if the path is literal or has whole-segment parameters, and nothing
 * registered earlier could match it. The router's own search takes longer than a short handler.
 *
 * Everything else is left to the router: name spellings, patterns, routes after middleware or in nested routers. A
 * request whose handlers call `next` continues in the router after that route.
 */
export class DirectRoutes {
  readonly #router: Router;
  /** Literal routes by method and path. */
  readonly #literalRoutes = new Map<string, DirectRoute>();
  /** Parameter routes by method, in order of registration. */
  readonly #parameterRoutes = new Map<string, DirectRoute[]>();
  /** All literal paths registered, as method and lower-case path. */
  readonly #registered = new Set<string>();
  readonly #skipped = new WeakMap<Request, SkippedRoute>();
  /** Something was registered that might match any request, so later routes are left to the router. */
  #isClosed = false;
  #isRegistering = false;
  /** Only the router calls `param` callbacks. */
  #hasParamCallbacks = false;

  /** @param router without routes; later registrations are intercepted */
  constructor(router: Router) {
    this.#router = router;
    for (const verb of VERBS) {
      this.#intercept(verb, (register, args) => this.#register(verb.toUpperCase(), register, args));
    }
    for (const name of OTHER_METHODS) {
      this.#intercept(name, (register, args) => {
        this.#isClosed = true;
        const registered = register(...wrapHandlers(args));
        return name === 'route' ? wrapRoute(registered as unknown as Route) : registered;
      });
    }
    this.#intercept('param', (register, args) => {
      this.#hasParamCallbacks = true;
      return register(...args);
    });
  }

  /**
   * Serves a request directly or by the router.
   * @param path as sent, below the router's mount path, as in `request.url`
   */
  serve(path: string, request: Request, response: Response, next: NextFunction): void {
    const literal = this.#literalRoutes.get(`${request.method} ${path}`);
    const parts = literal === undefined ? path.slice(1).split('/') : NO_PARTS;
    const direct = literal ?? this.#findParameterRoute(request.method, path, parts);
    if (direct === undefined) {
      this.#router(request, response, next);
      return;
    }
    const routed = request as { params: Request['params']; route: unknown };
    routed.params = parametersOf(direct, parts);
    routed.route = direct.route;
    this.#call({ direct, request, response, next }, 0);
  }

  #findParameterRoute(
    method: string,
    path: string,
    parts: readonly string[],
  ): DirectRoute | undefined {
    const patterns = this.#parameterRoutes.get(method);
    // The router decodes parameters.
    if (patterns === undefined || this.#hasParamCallbacks || path.includes('%')) return undefined;
    if (this.#registered.has(`${method} ${path.toLowerCase()}`)) return undefined;
    return patterns.find((each) => matches(each, parts));
  }

  /** Calls the handler at an index, whose `next` calls the one after it. */
  #call(call: RouteCall, at: number): void {
    const { direct, request, response } = call;
    const callNext: NextFunction = (error?: unknown) => {
      const isLast = at + 1 >= direct.handlers.length;
      if (isLast || (error !== undefined && error !== null)) this.#skip(call, error);
      else this.#call(call, at + 1);
    };
    request.next = callNext;
    try {
      const result: unknown = direct.handlers[at]?.(request, response, callNext);
      if (isPromise(result)) result.then(undefined, (error: unknown) => callNext(toError(error)));
    } catch (error) {
      callNext(toError(error));
    }
  }

  /** Continues in the router, where the route's guard skips its handlers. */
  #skip({ direct, request, response, next }: RouteCall, error: unknown): void {
    this.#skipped.set(request, { direct, error: error ?? 'route' });
    this.#router(request, response, next);
  }

  #intercept(
    name: (typeof VERBS)[number] | (typeof OTHER_METHODS)[number] | 'param',
    onRegister: (register: Register, args: readonly unknown[]) => unknown,
  ): void {
    const register = this.#router[name].bind(this.#router) as Register;
    const value = (...args: readonly unknown[]): unknown => {
      // Express registers some methods through others; only the outer call counts.
      if (this.#isRegistering) return register(...args);
      this.#isRegistering = true;
      try {
        return onRegister(register, args);
      } finally {
        this.#isRegistering = false;
      }
    };
    Object.defineProperty(this.#router, name, { configurable: true, writable: true, value });
  }

  #register(method: string, register: Register, args: readonly unknown[]): Router {
    const [path, ...rest] = args;
    const handlers = rest.flat(Infinity);
    const isLiteral = typeof path === 'string' && LITERAL_PATH.test(path);
    if (isLiteral) this.#registered.add(`${method} ${path.toLowerCase()}`);
    const isPattern = typeof path === 'string' && PARAMETER_PATH.test(path);
    if (!(isLiteral || isPattern) || !areRequestHandlers(handlers)) this.#isClosed = true;
    if (this.#isClosed || !areRequestHandlers(handlers)) return register(...wrapHandlers(args));
    const segments = String(path).slice(1).split('/').map(segmentOf);
    return this.#add(method, String(path), segments, handlers, register);
  }

  #add(
    method: string,
    path: string,
    segments: readonly Segment[],
    handlers: readonly RequestHandler[],
    register: Register,
  ): Router {
    // Without it, a request would reach the same handlers twice.
    const guard: RequestHandler = (request, _response, next) => {
      const skipped = this.#skipped.get(request);
      if (skipped?.direct !== direct) return next();
      this.#skipped.delete(request);
      return next(skipped.error);
    };
    const router = register(path, guard, ...wrapHandlers(handlers));
    const { route } = router.stack.at(-1) ?? {};
    const direct: DirectRoute = { route, handlers, segments };
    const patterns = this.#parameterRoutes.get(method) ?? [];
    const literals = segments.map((each) => ('literal' in each ? each.literal : null));
    if (literals.includes(null)) this.#parameterRoutes.set(method, [...patterns, direct]);
    else if (!this.#isShadowed(method, path)) this.#literalRoutes.set(`${method} ${path}`, direct);
    return router;
  }

  /** Whether an earlier route matches a path. Express ignores case. */
  #isShadowed(method: string, path: string): boolean {
    const start = `${method} `;
    const lower = path.toLowerCase();
    const known = [...this.#literalRoutes.keys()].filter((each) => each.startsWith(start));
    if (known.some((each) => each.slice(start.length).toLowerCase() === lower)) return true;
    const parts = lower.slice(1).split('/');
    return (this.#parameterRoutes.get(method) ?? []).some((each) => matches(each, parts));
  }
}

function segmentOf(literal: string): Segment {
  return literal.startsWith(':')
    ? { parameter: literal.slice(1) }
    : { literal: literal.toLowerCase() };
}

function matches({ segments }: DirectRoute, parts: readonly string[]): boolean {
  if (segments.length !== parts.length) return false;
  return segments.every((segment, at) => {
    const part = parts[at] ?? '';
    return 'parameter' in segment
      ? part !== ''
      : segment.literal === part || segment.literal === part.toLowerCase();
  });
}

/** Like Express, without inherited properties. An object with a null prototype is much slower. */
class Parameters {
  [name: string]: string;
}
Object.setPrototypeOf(Parameters.prototype, null);
Reflect.deleteProperty(Parameters.prototype, 'constructor');

function parametersOf({ segments }: DirectRoute, parts: readonly string[]): Request['params'] {
  const parameters = new Parameters();
  if (parts.length === 0) return parameters;
  for (const [at, segment] of segments.entries()) {
    if ('parameter' in segment) parameters[segment.parameter] = parts[at] ?? '';
  }
  return parameters;
}

/** Handlers of Express have at most three parameters; with four, they handle errors. */
function areRequestHandlers(args: readonly unknown[]): args is readonly RequestHandler[] {
  return args.length > 0 && args.every((each) => typeof each === 'function' && each.length <= 3);
}
