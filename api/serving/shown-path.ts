import { MASK } from '../../domain/pipeline/secrets.ts';

/** A callback's token is the credential of its call. */
const TOKEN = /(\/callbacks\/+)[^/]+/i;

/** A request's path, in a form that logs, traces, the audit and errors may show. */
export function shownPath({ path }: { readonly path: string }): string {
  return path.replace(TOKEN, `$1${MASK}`);
}

/** Whether a request's path holds a token, which other parts of the request may repeat. */
export function holdsToken({ path }: { readonly path: string }): boolean {
  return TOKEN.test(path);
}
