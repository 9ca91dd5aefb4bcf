import type { Router } from 'express';

type Handler = (...args: readonly unknown[]) => unknown;
type Register = (...args: readonly unknown[]) => unknown;

const ROUTE_METHODS = ['all', 'get', 'post', 'put', 'patch', 'delete', 'options', 'head'] as const;

/**
 * Converts a thrown value to an error. Express would take nothing, `route` and `router` as a call of `next`. Values
 * passed to `next` stay as they are.
 */
export function toError(thrown: unknown): unknown {
  const isNextWord = !thrown || thrown === 'route' || thrown === 'router';
  return isNextWord ? new Error(`thrown: ${String(thrown)}`) : thrown;
}

/** Wraps handlers, in nested lists or not, so that they only throw errors. */
export function wrapHandlers(args: readonly unknown[]): readonly unknown[] {
  return args.map((each) => {
    if (Array.isArray(each)) return wrapHandlers(each);
    return typeof each === 'function' && !isRouter(each) ? wrapHandler(each as Handler) : each;
  });
}

/** Wraps the registering methods of a route in the same way. */
export function wrapRoute(route: ReturnType<Router['route']>): ReturnType<Router['route']> {
  for (const name of ROUTE_METHODS) {
    const register = route[name].bind(route) as Register;
    const value: Register = (...args) => register(...wrapHandlers(args));
    Object.defineProperty(route, name, { configurable: true, writable: true, value });
  }
  return route;
}

/** Keeps the number of parameters, by which Express recognizes error handlers. */
function wrapHandler(handler: Handler): Handler {
  const call: Handler = (...args) => {
    try {
      const result = handler(...args);
      return isPromise(result) ? result.then(undefined, rethrow) : result;
    } catch (thrown) {
      throw toError(thrown);
    }
  };
  Object.defineProperty(call, 'length', { value: handler.length });
  return Object.defineProperty(call, 'name', { value: handler.name });
}

function rethrow(thrown: unknown): never {
  throw toError(thrown);
}

/** A nested router or application handles its own errors. */
function isRouter(value: object): boolean {
  return typeof (value as { readonly handle?: unknown }).handle === 'function';
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}
