import autocannon, { type Request } from 'autocannon';

/** Requests that are sent again and again, each connection going through them in their order. */
export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly requests: readonly (Request & { readonly path: string })[];
}

/** What came of it. */
export interface LoadResult {
  readonly perSecond: number;
  /** From sending a request to having its whole answer, in milliseconds. */
  readonly latencies: readonly number[];
}

/**
 * Sends requests to a server of this machine, each connection the next one as soon as it has the answer.
 *
 * @throws Error when any of them is not answered with success
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
    throw new Error(`${result.errors} errors, ${result.non2xx} refusals: ${statuses}`);
  }
  return { perSecond: (latencies.length / (ended - began)) * 1000, latencies };
}
