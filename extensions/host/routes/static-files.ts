import { existsSync } from 'node:fs';
import { join } from 'node:path';
import express, { type Request, type Response } from 'express';

/**
 * The files of an extension's folder `static`: at `/static/<path>`, and `static/index.html` at `/`. They are not to
 * be kept by anybody without asking (`no-cache`, with an ETag), so that a new release shows at once.
 */
export class StaticFiles {
  readonly #serve: ReturnType<typeof express.static>;

  private constructor(folder: string, pageHeaders: Readonly<Record<string, string>>) {
    this.#serve = express.static(folder, {
      index: 'index.html',
      redirect: false,
      dotfiles: 'ignore',
      cacheControl: false,
      // They are small: a part of one that can't be given would be one more thing to refuse.
      acceptRanges: false,
      setHeaders: (response) => {
        for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value);
        response.setHeader('Cache-Control', 'no-cache');
      },
    });
  }

  /** @param folder the extension's; null where it has no folder `static` */
  static of(folder: string, pageHeaders: Readonly<Record<string, string>>): StaticFiles | null {
    const files = join(folder, 'static');
    return existsSync(files) ? new StaticFiles(files, pageHeaders) : null;
  }

  /**
   * @returns whether there is such a file; then it is the answer
   * @throws PreconditionFailed for a file that is not as the request asks for
   */
  serve(rest: string, request: Request, response: Response): Promise<boolean> {
    const path = rest === '/' ? '/' : rest.startsWith('/static/') ? rest.slice(7) : null;
    if (path === null || (path !== '/' && path.endsWith('/'))) return Promise.resolve(false);
    const { url } = request;
    request.url = path;
    return new Promise((resolve, reject) => {
      response.once('close', () => resolve(true));
      void this.#serve(request, response, (error?: unknown) => {
        request.url = url;
        if (error === undefined || error === null) resolve(false);
        else reject(faultOf(error, response));
      });
    });
  }
}

/** `If-Match` or `If-Unmodified-Since` does not hold for a file. */
export class PreconditionFailed extends Error {
  readonly code = 'precondition_failed';
  readonly details = { resource: 'file' };

  constructor() {
    super('the file is not as If-Match or If-Unmodified-Since says');
    this.name = 'PreconditionFailed';
  }
}

function faultOf(error: unknown, response: Response): Error {
  if (!(error instanceof Error)) return new Error('a file could not be sent');
  if ((error as Error & { readonly status?: unknown }).status !== 412) return error;
  // Of the file, which is not what is sent.
  for (const name of ['Last-Modified', 'Content-Type']) response.removeHeader(name);
  response.setHeader('Cache-Control', 'no-store');
  return new PreconditionFailed();
}
