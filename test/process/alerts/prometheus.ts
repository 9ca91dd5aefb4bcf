import { spawn, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { projectRoot } from '../../support/project-root.ts';
import { Signal, eventually } from '../../support/signals.ts';

/** An alert as Prometheus shows it, pending ones included. */
export interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: 'pending' | 'firing';
}

const READY_LIMIT_MS = 60_000;

/** A real Prometheus that scrapes one target every half second, with the documented rules. */
export class Prometheus {
  readonly #url: string;
  readonly #child: ChildProcess;
  readonly #ended: Signal<number | null>;

  private constructor(url: string, child: ChildProcess, ended: Signal<number | null>) {
    this.#url = url;
    this.#child = child;
    this.#ended = ended;
  }

  /**
   * @param options.rules the rules as YAML, whose times can be shortened
   * @param options.target `host:port` of the scraped process, at `options.path`
   */
  static async start(options: {
    readonly program: string;
    readonly directory: string;
    readonly target: string;
    readonly path: string;
    readonly rules: string;
  }): Promise<Prometheus> {
    const { program, directory, target, path, rules } = options;
    writeFileSync(join(directory, 'alerts.yml'), rules);
    const configuration = {
      global: { scrape_interval: '500ms', evaluation_interval: '500ms' },
      rule_files: [join(directory, 'alerts.yml')],
      scrape_configs: [
        { job_name: 'svc', metrics_path: path, static_configs: [{ targets: [target] }] },
      ],
    };
    writeFileSync(join(directory, 'prometheus.yml'), stringify(configuration));
    const port = await freePort();
    const child = spawn(
      program,
      [
        `--config.file=${join(directory, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(directory, 'prometheus')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const ended = new Signal<number | null>('the end of Prometheus');
    child.once('close', ended.send);
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`, child, ended);
    await eventually(
      async () => {
        const { status } = await fetch(`${prometheus.#url}/-/ready`);
        if (status !== 200) throw new Error(`not ready: ${status}`);
      },
      { limitMs: READY_LIMIT_MS, what: 'Prometheus to be ready' },
    );
    return prometheus;
  }

  /** The alerts that are pending or firing now. */
  async alerts(): Promise<readonly Alert[]> {
    const answer = await fetch(`${this.#url}/api/v1/alerts`);
    const { data } = (await answer.json()) as {
      readonly data: { readonly alerts: readonly Alert[] };
    };
    return data.alerts;
  }

  /** Waits until an alert fires, or no longer fires. */
  async shows(alert: string, isFiring: boolean, limitMs = 60_000): Promise<void> {
    await eventually(
      async () => {
        const firing = (await this.alerts()).filter(({ state }) => state === 'firing');
        const names = firing.map(({ labels }) => labels['alertname'] ?? '');
        if (names.includes(alert) !== isFiring) throw new Error(`firing: ${names.join(', ')}`);
      },
      { limitMs, what: `${alert} to ${isFiring ? 'fire' : 'clear'}` },
    );
  }

  async stop(): Promise<void> {
    if (this.#ended.values.length > 0) return;
    this.#child.kill('SIGKILL');
    await this.#ended.wait();
  }
}

/**
 * The documented rules with their times shortened to seconds. Their conditions and series are
 * unchanged.
 */
export function quickRules(): string {
  const spans: Readonly<Record<string, string>> = { '15m': '10s', '1h': '10s' };
  const text = readFileSync(join(projectRoot, 'docs/grafana/alerts.yml'), 'utf8');
  return text
    .replaceAll(/for: \w+/g, 'for: 1s')
    .replaceAll(
      /(\[|offset )(15m|1h)\b/g,
      (_, before: string, span: string) => before + spans[span],
    )
    .replace('(run_slots_full_seconds) > 300', '(run_slots_full_seconds) > 1');
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}
