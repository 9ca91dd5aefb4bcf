import type { NextFunction, Request, RequestHandler, Response, Router } from 'express';
import { asFault, guarded, guardedRoute, isPromise } from './thrown.ts';

const verbs = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** What else can be registered with a router: it may take requests of any method or path. */
const others = ['use', 'all', 'route', 'options', 'head'] as const;

/** Texts between slashes that a pattern of Express takes for nothing else. */
const PLAIN = /^(?:\/|(?:\/[\w.~-]+)+)$/;
/** The same, with parameters that stand for a whole segment each. */
const WITH_PARAMETERS = /^(?:\/(?::[A-Za-z_]\w*|[\w.~-]+))+$/;

/** Of a path: a text in lower case, as Express knows no case, or a parameter. */
type Segment = { readonly text: string } | { readonly parameter: string };

/** A route that an extension has given its router, and that can be gone to without it. */
interface DirectRoute {
  /** What Express has made of it, and sets as `request.route`. */
  readonly route: unknown;
  readonly handlers: readonly RequestHandler[];
  readonly segments: readonly Segment[];
}

/** A direct route that let its request go on, and with what. */
interface Passed {
  readonly by: DirectRoute;
  readonly fault: unknown;
}

/** A request on its way through the handlers of a direct route. */
interface Way {
  readonly by: DirectRoute;
  readonly request: Request;
  readonly response: Response;
  /** What stands behind the router. */
  readonly next: NextFunction;
}

const NO_PARTS: readonly string[] = [];

type Register = (...given: readonly unknown[]) => Router;
type Route = ReturnType<Router['route']>;

/**
 * Goes to handlers of a router of Express without it, where what it would find is plain: a path of texts and whole
 * parameters that nothing registered earlier could take. To look through patterns, and to go from router to route to
 * handler, takes the router longer than a short handler takes.
 *
 * Everything else is the router's as ever: other spellings, patterns, what comes after a middleware or below a router
 * within it, and what a handler lets go on by its `next`, which goes from there through all that stands behind it.
 */
export class DirectRoutes {
  readonly #router: Router;
  /** By method and path. */
  readonly #plain = new Map<string, DirectRoute>();
  /** By method; in their order. */
  readonly #patterns = new Map<string, DirectRoute[]>();
  /** Methods and plain paths in lower case, wherever they stand. */
  readonly #written = new Set<string>();
  readonly #passed = new WeakMap<Request, Passed>();
  /** Something was registered that might take any request: whatever comes later stands behind it. */
  #isClosed = false;
  #isRegistering = false;
  /** Callbacks for parameters are the router's to call. */
  #hasCallbacks = false;

  /** @param router one that has no routes yet; what is registered with it from now on is seen */
  constructor(router: Router) {
    this.#router = router;
    for (const verb of verbs) {
      this.#watch(verb, (register, given) => this.#register(verb.toUpperCase(), register, given));
    }
    for (const other of others) {
      this.#watch(other, (register, given) => {
        this.#isClosed = true;
        const registered = register(...guarded(given));
        return other === 'route' ? guardedRoute(registered as unknown as Route) : registered;
      });
    }
    this.#watch('param', (register, given) => {
      this.#hasCallbacks = true;
      return register(...given);
    });
  }

  /**
   * Leads a request to who takes it, or on to what stands behind the router.
   * @param path of the request as it was sent, below where the router is mounted, as `request.url` is
   */
  serve(path: string, request: Request, response: Response, next: NextFunction): void {
    const plain = this.#plain.get(`${request.method} ${path}`);
    const parts = plain === undefined ? path.slice(1).split('/') : NO_PARTS;
    const by = plain ?? this.#patternOf(request.method, path, parts);
    if (by === undefined) {
      this.#router(request, response, next);
      return;
    }
    const led = request as { params: Request['params']; route: unknown };
    led.params = parametersOf(by, parts);
    led.route = by.route;
    this.#call({ by, request, response, next }, 0);
  }

  #patternOf(method: string, path: string, parts: readonly string[]): DirectRoute | undefined {
    const patterns = this.#patterns.get(method);
    // A parameter that is not as it stands there, but is to be decoded first, is the router's.
    if (patterns === undefined || this.#hasCallbacks || path.includes('%')) return undefined;
    if (this.#written.has(`${method} ${path.toLowerCase()}`)) return undefined;
    return patterns.find((each) => fits(each, parts));
  }

  /** Calls one of a route's handlers, which may let the one behind it have the request. */
  #call(way: Way, at: number): void {
    const { by, request, response } = way;
    const goOn: NextFunction = (fault?: unknown) => {
      const isOver = at + 1 >= by.handlers.length;
      if (isOver || (fault !== undefined && fault !== null)) this.#pass(way, fault);
      else this.#call(way, at + 1);
    };
    request.next = goOn;
    try {
      const going: unknown = by.handlers[at]?.(request, response, goOn);
      if (isPromise(going)) going.then(undefined, (thrown: unknown) => goOn(asFault(thrown)));
    } catch (thrown) {
      goOn(asFault(thrown));
    }
  }

  /** On through the router, where the same route does nothing but to let the request go on in the same way. */
  #pass({ by, request, response, next }: Way, fault: unknown): void {
    this.#passed.set(request, { by, fault: fault ?? 'route' });
    this.#router(request, response, next);
  }

  #watch(
    name: (typeof verbs)[number] | (typeof others)[number] | 'param',
    seen: (register: Register, given: readonly unknown[]) => unknown,
  ): void {
    const register = this.#router[name].bind(this.#router) as Register;
    const value = (...given: readonly unknown[]): unknown => {
      // Express registers the one by the other: what was called from outside is what counts.
      if (this.#isRegistering) return register(...given);
      this.#isRegistering = true;
      try {
        return seen(register, given);
      } finally {
        this.#isRegistering = false;
      }
    };
    Object.defineProperty(this.#router, name, { configurable: true, writable: true, value });
  }

  #register(method: string, register: Register, given: readonly unknown[]): Router {
    const [path, ...rest] = given;
    const handlers = rest.flat(Infinity);
    const isPlain = typeof path === 'string' && PLAIN.test(path);
    if (isPlain) this.#written.add(`${method} ${path.toLowerCase()}`);
    const isPattern = typeof path === 'string' && WITH_PARAMETERS.test(path);
    if (!(isPlain || isPattern) || !areHandlers(handlers)) this.#isClosed = true;
    if (this.#isClosed || !areHandlers(handlers)) return register(...guarded(given));
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
    // Without it a request that was let go on would come to the same handlers a second time.
    const guard: RequestHandler = (request, _response, next) => {
      const passed = this.#passed.get(request);
      if (passed?.by !== direct) return next();
      this.#passed.delete(request);
      return next(passed.fault);
    };
    const router = register(path, guard, ...guarded(handlers));
    const { route } = router.stack.at(-1) ?? {};
    const direct: DirectRoute = { route, handlers, segments };
    const patterns = this.#patterns.get(method) ?? [];
    const written = segments.map((each) => ('text' in each ? each.text : null));
    if (written.includes(null)) this.#patterns.set(method, [...patterns, direct]);
    else if (!this.#isTaken(method, path)) this.#plain.set(`${method} ${path}`, direct);
    return router;
  }

  /** Whether something that was registered before takes a path: Express knows no case. */
  #isTaken(method: string, path: string): boolean {
    const start = `${method} `;
    const lower = path.toLowerCase();
    const known = [...this.#plain.keys()].filter((each) => each.startsWith(start));
    if (known.some((each) => each.slice(start.length).toLowerCase() === lower)) return true;
    const parts = lower.slice(1).split('/');
    return (this.#patterns.get(method) ?? []).some((each) => fits(each, parts));
  }
}

function segmentOf(text: string): Segment {
  return text.startsWith(':') ? { parameter: text.slice(1) } : { text: text.toLowerCase() };
}

function fits({ segments }: DirectRoute, parts: readonly string[]): boolean {
  if (segments.length !== parts.length) return false;
  return segments.every((segment, at) => {
    const part = parts[at] ?? '';
    return 'parameter' in segment
      ? part !== ''
      : segment.text === part || segment.text === part.toLowerCase();
  });
}

/** As Express gives them: nothing is there that the path does not name. An object of no kind at all costs far more. */
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

/** Those of Express take at most a request, a response and what lets it go on; with four parameters they are for errors. */
function areHandlers(given: readonly unknown[]): given is readonly RequestHandler[] {
  return given.length > 0 && given.every((each) => typeof each === 'function' && each.length <= 3);
}
