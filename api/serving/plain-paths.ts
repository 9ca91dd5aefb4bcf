import type { Express, Request, Response } from 'express';
import { setRoute } from './measuring.ts';
import { respondToOtherMethod } from './mount.ts';
import { queryCheck } from './validation.ts';

const refuseQuery = queryCheck(undefined);

/**
 * Serves a public path outside the interface's list of endpoints.
 * @param options.page links to a page may carry any query; all other paths take none
 */
export function servePlainly(
  app: Express,
  path: string,
  answer: (response: Response) => Promise<void> | void,
  { page = false }: { readonly page?: boolean } = {},
): void {
  app.all(path, (request: Request, response: Response) => {
    setRoute(response, path);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      respondToOtherMethod(request, response, ['GET']);
      return undefined;
    }
    if (!page && request.url.includes('?')) refuseQuery(request.query);
    return answer(response);
  });
}
