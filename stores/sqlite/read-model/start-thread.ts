import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker, type ResourceLimits } from 'node:worker_threads';

/**
 * Starts a thread on a module that lies beside the caller's, with the caller's own ending: `.js` once
 * emitted. As `.ts` the sources run through tsx, whose loader does not reach into threads on Node 20;
 * there `source-thread.mjs` loads it first.
 *
 * @param module relative to the caller, without its ending: `./reader-thread`
 * @param caller `import.meta.url`
 * @param data what the thread finds as `workerData`
 * @param resourceLimits of its heap; default: Node's own
 */
export function startThread(
  module: string,
  caller: string,
  data?: unknown,
  resourceLimits: ResourceLimits = {},
): Worker {
  const ending = extname(fileURLToPath(caller));
  const entry = new URL(`${module}${ending}`, caller);
  if (ending !== '.ts') {
    return new Worker(entry, { workerData: data, resourceLimits, ...sourceMaps() });
  }
  const loader = new URL('./source-thread.mjs', import.meta.url);
  // Not the options of this process: by these each thread would load tsx, whether it needs it or not.
  return new Worker(loader, { argv: [entry.href], execArgv: [], workerData: data, resourceLimits });
}

/**
 * A thread does not take over `process.setSourceMapsEnabled` from its process, but takes over options. Where the process
 * was given some, its threads keep those: V8's can't be repeated for a thread.
 */
function sourceMaps(): { readonly execArgv?: string[] } {
  const repeatable = process.sourceMapsEnabled && process.execArgv.length === 0;
  return repeatable ? { execArgv: ['--enable-source-maps'] } : {};
}
