import { existsSync, readdirSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import express, { type Request, type Response } from 'express';

/** Compressed files that may lie beside a file, by the codings of HTTP; the smallest first. */
const variants = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

const fileHeaders = ['Last-Modified', 'Content-Type', 'Content-Encoding'];

/** Names such as `main.0123456789abcdef.js` hold a hash of the content. */
const HASHED = /\.[0-9a-f]{16}\.\w+$/;

/**
 * The files of an extension's folder `static`, at `/static/<path>`, and its `index.html` at `/`. Sent with an ETag and
 * `no-cache`, so a new release shows at once. A file whose name holds a hash of its content never changes, and browsers
 * keep it. Where `<name>.br` or `<name>.gz` lies beside a file, it is sent to clients that accept its encoding.
 */
export class StaticFiles {
  readonly #serve: ReturnType<typeof express.static>;
  /** All files, as paths below `static`. */
  readonly #paths: ReadonlySet<string>;

  private constructor(folder: string, pageHeaders: Readonly<Record<string, string>>) {
    this.#paths = new Set(
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
        (path) => `/${path.replaceAll(sep, '/')}`,
      ),
    );
    this.#serve = express.static(folder, {
      index: 'index.html',
      redirect: false,
      dotfiles: 'ignore',
      cacheControl: false,
      // The files are small, so ranges would only add error cases.
      acceptRanges: false,
      setHeaders: (response, path) => {
        for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value);
        const lifetime = HASHED.test(path.replace(/\.(br|gz)$/, ''))
          ? 'private, max-age=31536000, immutable'
          : 'no-cache';
        response.setHeader('Cache-Control', lifetime);
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
    request.url = this.#choose(path, request, response);
    return new Promise((resolve, reject) => {
      response.once('close', () => resolve(true));
      void this.#serve(request, response, (error?: unknown) => {
        request.url = url;
        // These headers describe the file, not the response that replaces it.
        for (const name of fileHeaders) response.removeHeader(name);
        if (error === undefined || error === null) resolve(false);
        else reject(toFileError(error, response));
      });
    });
  }

  /** Chooses the file or one of its compressed variants, sets the headers, and returns the path. */
  #choose(path: string, request: Request, response: Response): string {
    const file = path === '/' ? '/index.html' : path;
    const present = variants.filter(([, ending]) => this.#paths.has(file + ending));
    if (present.length === 0) return path;
    response.vary('Accept-Encoding');
    const chosen = present.find(([coding]) => request.acceptsEncodings(coding) === coding);
    if (chosen === undefined) return path;
    response.type(extname(file));
    response.setHeader('Content-Encoding', chosen[0]);
    return file + chosen[1];
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
  response.setHeader('Cache-Control', 'no-store');
  return new PreconditionFailedError();
}
