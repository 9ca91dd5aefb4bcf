import { MASK } from '../../domain/pipeline/secrets.ts';

/** A callback's token is the credential of its call. */
const TOKEN = /(\/callbacks\/+)[^/]+/i;

/** A request's path as logs, traces, the audit and errors may show it. */
export function shownPath({ path }: { readonly path: string }): string {
  return path.replace(TOKEN, `$1${MASK}`);
}

/** Whether a request's path holds a token. What its caller says elsewhere may repeat it. */
export function holdsToken({ path }: { readonly path: string }): boolean {
  return TOKEN.test(path);
}
