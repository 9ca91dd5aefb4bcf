import type { NextFunction, Request, RequestHandler, Response } from 'express';

/** Never throws. */
type Serve = (request: Request, response: Response, next: NextFunction) => void;

/**
 * Composes middleware into one. Express would match the path before each, which takes longer than most of them do.
 * Errors, thrown or rejected, go to the `next` of the whole.
 * @param handlers null stands for none
 */
export function compose(handlers: readonly (RequestHandler | null)[]): Serve {
  let serve: Serve = (_request, _response, next) => next();
  for (const handler of handlers.toReversed()) {
    if (handler !== null) serve = before(handler, serve);
  }
  return serve;
}

function before(handler: RequestHandler, after: Serve): Serve {
  return (request, response, next) => {
    const fail = (error: unknown): void => next(error);
    try {
      const pending: unknown = handler(request, response, (error?: unknown) => {
        if (error === undefined || error === null) after(request, response, next);
        else next(error);
      });
      if (pending instanceof Promise) pending.catch(fail);
    } catch (error) {
      next(error);
    }
  };
}
