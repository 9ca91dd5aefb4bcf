import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker, type ResourceLimits } from 'node:worker_threads';

/**
 * Starts a thread on a module beside the caller's, with the caller's extension (`.js` once compiled). TypeScript
 * sources run through `source-thread.mjs`, because tsx does not reach into threads on Node 20.
 * @param module relative to the caller, without extension: `./reader-thread`
 * @param caller `import.meta.url`
 * @param data the thread's `workerData`
 * @param resourceLimits limits of its heap; default: Node's own
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
  const loader = new URL('./read-model/source-thread.mjs', import.meta.url);
  // Not this process's own options, which would load tsx in every thread.
  return new Worker(loader, { argv: [entry.href], execArgv: [], workerData: data, resourceLimits });
}

/** Threads inherit options, but not `process.setSourceMapsEnabled`. Options given to the process cannot be extended. */
function sourceMaps(): { readonly execArgv?: string[] } {
  const repeatable = process.sourceMapsEnabled && process.execArgv.length === 0;
  return repeatable ? { execArgv: ['--enable-source-maps'] } : {};
}
