import { existsSync } from 'node:fs';
import { join } from 'node:path';
import express, { type Request, type Response } from 'express';

/**
 * The files of an extension's folder `static`, at `/static/<path>`, and its `index.html` at `/`. Sent with an ETag
 * and `no-cache`, so a new release shows at once.
 */
export class StaticFiles {
  readonly #serve: ReturnType<typeof express.static>;

  private constructor(folder: string, pageHeaders: Readonly<Record<string, string>>) {
    this.#serve = express.static(folder, {
      index: 'index.html',
      redirect: false,
      dotfiles: 'ignore',
      cacheControl: false,
      // The files are small, so ranges would only add error cases.
      acceptRanges: false,
      setHeaders: (response) => {
        for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value);
        response.setHeader('Cache-Control', 'no-cache');
      },
    });
  }

  /** @param folder of the extension @returns null without a folder `static` */
  static of(folder: string, pageHeaders: Readonly<Record<string, string>>): StaticFiles | null {
    const files = join(folder, 'static');
    return existsSync(files) ? new StaticFiles(files, pageHeaders) : null;
  }

  /**
   * @returns whether the file exists; it is then the response
   * @throws PreconditionFailedError
   */
  serve(subpath: string, request: Request, response: Response): Promise<boolean> {
    const path = subpath === '/' ? '/' : subpath.startsWith('/static/') ? subpath.slice(7) : null;
    if (path === null || (path !== '/' && path.endsWith('/'))) return Promise.resolve(false);
    const { url } = request;
    request.url = path;
    return new Promise((resolve, reject) => {
      response.once('close', () => resolve(true));
      void this.#serve(request, response, (error?: unknown) => {
        request.url = url;
        if (error === undefined || error === null) resolve(false);
        else reject(toFileError(error, response));
      });
    });
  }
}

/** A file does not meet `If-Match` or `If-Unmodified-Since`. */
export class PreconditionFailedError extends Error {
  readonly code = 'precondition_failed';
  readonly details = { resource: 'file' };

  constructor() {
    super('the file does not match If-Match or If-Unmodified-Since');
    this.name = 'PreconditionFailedError';
  }
}

function toFileError(error: unknown, response: Response): Error {
  if (!(error instanceof Error)) return new Error('could not send a file');
  if ((error as Error & { readonly status?: unknown }).status !== 412) return error;
  // These describe the file, not the error.
  for (const name of ['Last-Modified', 'Content-Type']) response.removeHeader(name);
  response.setHeader('Cache-Control', 'no-store');
  return new PreconditionFailedError();
}
