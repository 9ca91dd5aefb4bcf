import type { Router } from 'express';

type Handler = (...given: readonly unknown[]) => unknown;
type Register = (...given: readonly unknown[]) => unknown;

/** Ways to register handlers with a route. */
const ofRoutes = ['all', 'get', 'post', 'put', 'patch', 'delete', 'options', 'head'] as const;

/**
 * What a handler has thrown, as an error that counts as one: Express takes nothing, and the words by which a handler lets
 * a request go on, for just that. What is given to `next` stays as it is.
 */
export function asFault(thrown: unknown): unknown {
  const goesOn = !thrown || thrown === 'route' || thrown === 'router';
  return goesOn ? new Error(`thrown: ${String(thrown)}`) : thrown;
}

/** Handlers as they were given to a router, in lists or not, so that whatever they throw is an error. */
export function guarded(given: readonly unknown[]): readonly unknown[] {
  return given.map((each) => {
    if (Array.isArray(each)) return guarded(each);
    return typeof each === 'function' && !isRouter(each) ? guardedHandler(each as Handler) : each;
  });
}

/** A route whose handlers are guarded as well. */
export function guardedRoute(route: ReturnType<Router['route']>): ReturnType<Router['route']> {
  for (const name of ofRoutes) {
    const register = route[name].bind(route) as Register;
    const value: Register = (...given) => register(...guarded(given));
    Object.defineProperty(route, name, { configurable: true, writable: true, value });
  }
  return route;
}

/** Has as many parameters as the handler: by these Express knows which are for errors. */
function guardedHandler(handler: Handler): Handler {
  const call: Handler = (...given) => {
    try {
      const going = handler(...given);
      return isPromise(going) ? going.then(undefined, failed) : going;
    } catch (thrown) {
      throw asFault(thrown);
    }
  };
  Object.defineProperty(call, 'length', { value: handler.length });
  return Object.defineProperty(call, 'name', { value: handler.name });
}

function failed(thrown: unknown): never {
  throw asFault(thrown);
}

/** One within another, or a whole application: its handlers are its own affair. */
function isRouter(value: object): boolean {
  return typeof (value as { readonly handle?: unknown }).handle === 'function';
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}
