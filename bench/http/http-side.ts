import { load, type Load } from './http-load.ts';
import { cpuSecondsOf } from '../process-figures.ts';
import { percentile } from '../statistics.ts';

/** What one of two servers that take turns has done. */
export interface SideOfLoad {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of processor time of the server for each request, all threads together. */
  readonly cpu: number;
}

/** One of two servers that take turns, so that a slow moment of the machine hits both. */
export class Side {
  readonly #server: { readonly port: number; readonly pid: number };
  readonly #rates: number[] = [];
  readonly #latencies: number[] = [];
  #cpu = 0;

  constructor(server: { readonly port: number; readonly pid: number }) {
    this.#server = server;
  }

  /** Sends requests for a while. @param counts false for a turn that only warms up */
  async take(what: Omit<Load, 'port'>, counts: boolean): Promise<void> {
    const { port, pid } = this.#server;
    const before = cpuSecondsOf(pid);
    const { perSecond, latencies } = await load({ ...what, port });
    if (!counts) return;
    this.#cpu += cpuSecondsOf(pid) - before;
    this.#rates.push(perSecond);
    for (const latency of latencies) this.#latencies.push(latency);
  }

  /** Of all turns that count. */
  sum(): SideOfLoad {
    const latencies = this.#latencies;
    return {
      perSecond: this.#rates.reduce((sum, rate) => sum + rate, 0) / this.#rates.length,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      cpu: (this.#cpu * 1e6) / latencies.length,
    };
  }
}
