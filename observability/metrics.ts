import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import {
  counters,
  gauges,
  histograms,
  type GaugeName,
  type MetricDefinition,
} from './metric-catalogue.ts';
import { silent, type Failures, type Labels } from './telemetry.ts';

/**
 * Interval of measuring the event loop's delay. Milliseconds. The default of 10 would wake an idle process a hundred times
 * a second.
 */
const LAG_PRECISION = 50;

/** A current value of a gauge. */
export interface Reading {
  readonly labels?: Labels;
  readonly value: number;
}

export interface MetricsOptions {
  /** Called with the problem when an unknown metric or label is used. */
  readonly misuse: (message: string) => void;
  /** Reports gauges that cannot be read. Default: nobody learns of it. */
  readonly failures?: Pick<Failures, 'failed' | 'worked'>;
  /** Whether Node's own metrics are included. Default: true. */
  readonly ofNode?: boolean;
}

/** The metrics of a process, including Node's own (memory, processor, event loop). */
export class Metrics {
  /** The `Content-Type` of the text: version 0.0.4 of the text format. */
  readonly contentType: string;
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #misuse: (message: string) => void;
  readonly #failures: Pick<Failures, 'failed' | 'worked'>;

  constructor(options: MetricsOptions) {
    this.#misuse = options.misuse;
    this.#failures = options.failures ?? silent.failures;
    this.contentType = this.#registry.contentType;
    const registers = [this.#registry];
    if (options.ofNode !== false) {
      collectDefaultMetrics({
        register: this.#registry,
        eventLoopMonitoringPrecision: LAG_PRECISION,
      });
    }
    for (const [name, { help, labels }] of Object.entries(counters)) {
      this.#counters.set(name, new Counter({ name, help, labelNames: labels, registers }));
    }
    for (const [name, { help, labels, buckets }] of Object.entries(histograms)) {
      const shape = { name, help, labelNames: labels, buckets: [...buckets], registers };
      this.#histograms.set(name, new Histogram(shape));
    }
  }

  /** Adds to a counter of the catalogue. A negative or broken amount is a misuse and adds nothing. */
  count(name: string, labels: Labels = {}, by = 1): void {
    const counter = this.#counters.get(name);
    const definition = (counters as Readonly<Record<string, MetricDefinition>>)[name];
    if (counter === undefined || definition === undefined) {
      this.#misuse(`unknown counter ${name}`);
    } else if (!(by >= 0 && Number.isFinite(by))) {
      this.#misuse(`cannot increase the counter ${name} by ${String(by)}`);
    } else if (this.#fits(name, definition, labels)) {
      counter.inc(labels, by);
    }
  }

  /** Records a value in a histogram of the catalogue. A value that is not a number is a misuse. */
  observe(name: string, value: number, labels: Labels = {}): void {
    const histogram = this.#histograms.get(name);
    const definition = (histograms as Readonly<Record<string, MetricDefinition>>)[name];
    if (histogram === undefined || definition === undefined) {
      this.#misuse(`unknown histogram ${name}`);
    } else if (!Number.isFinite(value)) {
      this.#misuse(`the histogram ${name} cannot record ${String(value)}`);
    } else if (this.#fits(name, definition, labels)) {
      histogram.observe(labels, value);
    }
  }

  /**
   * Registers how to read a gauge of the catalogue, once at start. Each reading replaces the previous one. A reading that
   * fails leaves the gauge out of that response.
   */
  gauge(name: GaugeName, read: () => readonly Reading[] | Promise<readonly Reading[]>): void {
    const { help, labels } = gauges[name];
    const failures = this.#failures;
    const failure = `could not read the gauge ${name}; retrying when metrics are read again`;
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: labels,
      registers: [this.#registry],
      async collect() {
        try {
          const readings = await read();
          gauge.reset();
          for (const reading of readings) gauge.set({ ...reading.labels }, reading.value);
          failures.worked(failure);
        } catch (error) {
          gauge.reset();
          // A reset gauge without labels reads as 0.
          if (labels.length === 0) gauge.remove();
          failures.failed(failure, error);
        }
      },
    });
  }

  /** All metrics as text, with `HELP` and `TYPE` lines. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #fits(name: string, definition: MetricDefinition, labels: Labels): boolean {
    // Several calls per request: the normal case must not allocate.
    let count = 0;
    for (const label in labels) if (labels[label] !== undefined) count += 1;
    const { labels: wanted } = definition;
    if (count === wanted.length && wanted.every((label) => labels[label] !== undefined))
      return true;
    const given = Object.keys(labels);
    const unknown = given.find((label) => !definition.labels.includes(label));
    const missing = definition.labels.find((label) => !given.includes(label));
    if (unknown !== undefined) this.#misuse(`the metric ${name} has no label ${unknown}`);
    else if (missing !== undefined) this.#misuse(`the metric ${name} lacks its label ${missing}`);
    return unknown === undefined && missing === undefined;
  }
}
