import { expect } from 'chai';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { inOrder } from '../../../api/serving/in-order.ts';

const request = {} as Request;
const response = {} as Response;

/** What `next` was called with, once it was. */
function led(handlers: readonly (RequestHandler | null)[]): Promise<unknown> {
  return new Promise((resolve) => {
    inOrder(handlers)(request, response, ((fault: unknown) => resolve(fault)) as NextFunction);
  });
}

describe('handlers in their order', () => {
  it('go on one to the other, and then to what stands behind them', async () => {
    const seen: string[] = [];
    const sees =
      (name: string): RequestHandler =>
      (_request, _response, next) => {
        seen.push(name);
        next();
      };
    expect(await led([sees('one'), null, sees('two')])).to.equal(undefined);
    expect(seen).to.deep.equal(['one', 'two']);
  });

  it('end with the first that does not go on', () => {
    const seen: string[] = [];
    const last: RequestHandler = () => void seen.push('last');
    const behind: RequestHandler = () => void seen.push('behind');
    inOrder([last, behind])(request, response, () => void seen.push('next'));
    expect(seen).to.deep.equal(['last']);
  });

  it('tell of a fault that is given, thrown, or comes by a promise, and of none behind it', async () => {
    const fault = new Error('a fault');
    const faulty: readonly RequestHandler[] = [
      (_request, _response, next) => next(fault),
      () => {
        throw fault;
      },
      async () => {
        await Promise.resolve();
        throw fault;
      },
    ];
    for (const handler of faulty) {
      const behind: RequestHandler = () => expect.fail('it went on');
      expect(await led([handler, behind])).to.equal(fault);
      const before: RequestHandler = (_request, _response, next) => next();
      expect(await led([before, handler])).to.equal(fault);
    }
  });
});
