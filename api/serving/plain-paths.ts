import type { Express, Request, Response } from 'express';
import { takenBy } from './measuring.ts';
import { answerOtherMethod } from './mount.ts';
import { queryCheck } from './validation.ts';

const refuseQuery = queryCheck(undefined);

/**
 * Serves one path that is no endpoint of the interface's list: read by anybody, without a token.
 * @param options.page it is a page or belongs to one: links to it may carry any query. All else takes none
 */
export function servePlainly(
  app: Express,
  path: string,
  answer: (response: Response) => Promise<void> | void,
  { page = false }: { readonly page?: boolean } = {},
): void {
  app.get(path, (request: Request, response: Response) => {
    takenBy(response, path);
    if (!page && request.url.includes('?')) refuseQuery(request.query);
    return answer(response);
  });
  app.all(path, (request: Request, response: Response) => {
    takenBy(response, path);
    answerOtherMethod(request, response, ['GET']);
  });
}
