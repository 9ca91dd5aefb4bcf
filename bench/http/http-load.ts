import autocannon, { type Request } from 'autocannon';

/** Requests that each connection repeats in order. */
export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly requests: readonly (Request & { readonly path: string })[];
}

interface LoadResult {
  readonly perSecond: number;
  /** Milliseconds from sending a request to its whole response. */
  readonly latencies: readonly number[];
}

/**
 * Sends requests to a local server; each connection sends the next one when it has the response.
 * @throws Error if any response is not a success
 */
export async function load(options: Load): Promise<LoadResult> {
  const { port, connections, seconds, headers, requests } = options;
  const latencies: number[] = [];
  const began = performance.now();
  let ended = began;
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url: `http://127.0.0.1:${port}`,
        connections,
        duration: seconds,
        headers: { ...headers },
        requests: [...requests],
      },
      (fault: unknown, made: autocannon.Result) => {
        if (fault instanceof Error) reject(fault);
        else resolve(made);
      },
    );
    instance.on('response', (_client, _status, _bytes, took) => {
      latencies.push(took);
      ended = performance.now();
    });
  });
  if (result.errors > 0 || result.non2xx > 0) {
    const statuses = JSON.stringify(result.statusCodeStats ?? {});
    throw new Error(`${result.errors} errors, ${result.non2xx} rejections: ${statuses}`);
  }
  return { perSecond: (latencies.length / (ended - began)) * 1000, latencies };
}
