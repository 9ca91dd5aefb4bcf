/** Counts of the requests to the servers so far. */
export interface ServerLoad {
  readonly appends: number;
  /** Reads of single streams. */
  readonly streamReads: number;
  /** Reads of pages of the log. */
  readonly logReads: number;
  /** Reads of the position of the last event: the heartbeat of each process. */
  readonly endReads: number;
  /** Subscriptions that were opened. */
  readonly subscriptions: number;
  /** Commands to MongoDB. */
  readonly commands: number;
  /** Documents sent to MongoDB to be written. */
  readonly documents: number;
}

/** The counts of {@link ServerLoad} in the metrics of a process: the counter, and its label. */
const counters: Readonly<Record<keyof ServerLoad, string>> = {
  appends: 'eventstore_calls_total{call="append"}',
  streamReads: 'eventstore_calls_total{call="read_stream"}',
  logReads: 'eventstore_calls_total{call="read_log"}',
  endReads: 'eventstore_calls_total{call="find_end"}',
  subscriptions: 'eventstore_calls_total{call="subscribe"}',
  commands: 'mongodb_commands_total',
  documents: 'mongodb_documents_total',
};

/** The requests of some processes to the servers, from their metrics. */
export function loadByMetrics(processes: readonly ProcessMetrics[]): ServerLoad {
  const load = Object.entries(counters).map(([name, counter]) => [
    name,
    processes.reduce((sum, metrics) => sum + metrics.sum(counter), 0),
  ]);
  return Object.fromEntries(load) as ServerLoad;
}

/** The requests between two measurements; null without servers. */
export function loadBetween(
  before: ServerLoad | null,
  after: ServerLoad | null,
): ServerLoad | null {
  if (before === null || after === null) return null;
  const names = Object.keys(counters) as (keyof ServerLoad)[];
  const asked = names.map((name) => [name, after[name] - before[name]]);
  return Object.fromEntries(asked) as ServerLoad;
}

/** The metrics of a process at one time. */
export class ProcessMetrics {
  readonly #lines: readonly string[];

  private constructor(text: string) {
    this.#lines = text.split('\n');
  }

  static async read({ port }: { readonly port: number }): Promise<ProcessMetrics> {
    const response = await fetch(`http://127.0.0.1:${port}/ext/observability/metrics`);
    if (!response.ok) throw new Error(`the metrics of port ${port}: ${response.status}`);
    return new ProcessMetrics(await response.text());
  }

  /** The sum of all series whose name and labels start like this; 0 if there is none. */
  sum(series: string): number {
    return this.#lines.reduce((sum, line) => {
      const rest = line.startsWith(series) ? line.slice(series.length) : undefined;
      const isOf = rest !== undefined && (rest.startsWith(' ') || rest.startsWith('{'));
      return isOf ? sum + Number(line.slice(line.lastIndexOf(' ') + 1)) : sum;
    }, 0);
  }
}
