import type { Express, Request, Response } from 'express';
import { takenBy } from './measuring.ts';
import { answerOtherMethod } from './mount.ts';

/** Serves one path that is no endpoint of the interface's list: read by anybody, without a token. */
export function servePlainly(
  app: Express,
  path: string,
  answer: (response: Response) => Promise<void> | void,
): void {
  app.get(path, (_request: Request, response: Response) => {
    takenBy(response, path);
    return answer(response);
  });
  app.all(path, (request: Request, response: Response) => {
    takenBy(response, path);
    answerOtherMethod(request, response, ['GET']);
  });
}
