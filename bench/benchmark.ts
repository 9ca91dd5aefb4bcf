/** The size of each benchmark. */
export interface Amounts {
  /** Runs of `drain` and `end-to-end`. */
  readonly n: number;
  /** Tasks of `lateness`. */
  readonly due: number;
  /** Runs of `latency`. */
  readonly idle: number;
  /** Events of `rebuild`, `rebuild-reads`, `as-of` and `export`. */
  readonly events: number;
  /** Runs of `keys-100`. */
  readonly keyed: number;
  /** Uses of `key-million`. */
  readonly uses: number;
  /** Seconds of each turn of `http-get` and `http-post`. */
  readonly seconds: number;
  /** Runs of `http-lists`, with a tenth as many tasks. */
  readonly listed: number;
  /** A folder for a reusable store of `http-lists`, `rebuild-reads` or `as-of`; undefined for none. */
  readonly store: string | undefined;
  /** Runs of each measurement of `cluster`. */
  readonly clustered: number;
  /** Tasks of `decisions`. */
  readonly deciding: number;
  /** Clients of `sse`. */
  readonly clients: number;
}

/** Measured values by name; the name has the unit unless the figure is a ratio. */
export type Figures = Readonly<Record<string, number>>;

/** The value that a figure should reach. */
export interface Target {
  readonly figure: string;
  readonly is: 'at least' | 'more than' | 'less than';
  readonly value: number;
  /** The reason for the value. */
  readonly because: string;
}

/** A benchmark. Each measurement starts on an empty store. */
export interface Benchmark {
  readonly targets: readonly Target[];
  /** Set if the peers' benchmark measures it too; `headline` is the figure of their table. */
  readonly peers?: { readonly unit: 'jobs/s' | 'ms'; readonly headline: string };
  count(amounts: Amounts): number;
  measure(amounts: Amounts): Promise<Figures>;
}

const targetOf =
  (is: Target['is']) =>
  (figure: string, value: number, because = 'the aim'): Target => ({ figure, is, value, because });

export const atLeast = targetOf('at least');
export const moreThan = targetOf('more than');
export const lessThan = targetOf('less than');
