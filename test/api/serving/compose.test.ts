import { expect } from 'chai';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { compose } from '../../../api/serving/compose.ts';

const request = {} as Request;
const response = {} as Response;

/** The argument of `next`, once it was called. */
function resultOf(handlers: readonly (RequestHandler | null)[]): Promise<unknown> {
  return new Promise((resolve) => {
    compose(handlers)(request, response, ((error: unknown) => resolve(error)) as NextFunction);
  });
}

describe('composed middleware', () => {
  it('runs in order, and then calls next', async () => {
    const seen: string[] = [];
    const sees =
      (name: string): RequestHandler =>
      (_request, _response, next) => {
        seen.push(name);
        next();
      };
    expect(await resultOf([sees('one'), null, sees('two')])).to.equal(undefined);
    expect(seen).to.deep.equal(['one', 'two']);
  });

  it('ends with the first handler that does not call next', () => {
    const seen: string[] = [];
    const last: RequestHandler = () => void seen.push('last');
    const behind: RequestHandler = () => void seen.push('behind');
    compose([last, behind])(request, response, () => void seen.push('next'));
    expect(seen).to.deep.equal(['last']);
  });

  it('passes on an error that is passed to next, thrown or rejected, and runs no later handler', async () => {
    const error = new Error('an error');
    const failing: readonly RequestHandler[] = [
      (_request, _response, next) => next(error),
      () => {
        throw error;
      },
      async () => {
        await Promise.resolve();
        throw error;
      },
    ];
    for (const handler of failing) {
      const behind: RequestHandler = () => expect.fail('a later handler ran');
      expect(await resultOf([handler, behind])).to.equal(error);
      const before: RequestHandler = (_request, _response, next) => next();
      expect(await resultOf([before, handler])).to.equal(error);
    }
  });
});
