import type { NextFunction, Request, RequestHandler, Response } from 'express';

/**
 * Handlers as one, each going on to the one behind it by its `next`, and the last to what stands behind all. As Express
 * leads a request through them, but without looking at its path before each, which takes as long as what most of them
 * do. A fault, thrown or by a promise too, goes to the `next` of all.
 *
 * @param handlers null stands for none
 */
export function inOrder(handlers: readonly (RequestHandler | null)[]): Serve {
  let serve: Serve = goOn;
  for (const handler of handlers.toReversed()) {
    if (handler !== null) serve = before(handler, serve);
  }
  return serve;
}

/** Never throws. */
type Serve = (request: Request, response: Response, next: NextFunction) => void;

const goOn: Serve = (_request, _response, next) => next();

function before(handler: RequestHandler, after: Serve): Serve {
  return (request, response, next) => {
    try {
      const going: unknown = handler(request, response, (fault?: unknown) => {
        if (fault === undefined || fault === null) after(request, response, next);
        else next(fault);
      });
      if (going instanceof Promise) void tellFault(going, next);
    } catch (error) {
      next(error);
    }
  };
}

async function tellFault(going: Promise<unknown>, next: NextFunction): Promise<void> {
  try {
    await going;
  } catch (error) {
    next(error);
  }
}
