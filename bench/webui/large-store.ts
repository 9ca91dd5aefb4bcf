import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { HealthReport } from '../../api/schemas/response-schemas-health.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { credentialsIn, type Credentials } from '../../test/support/service-process.ts';
import { BenchService, BenchStore } from '../bench-service.ts';
import { fillStore, type Filled } from './webui-store.ts';

/** A service on a filled store. */
export interface FilledService {
  readonly service: BenchService;
  readonly bench: BenchStore;
  readonly address: string;
  readonly credentials: Credentials;
  readonly tasks: Filled['tasks'];
}

/**
 * Works with a service on a store with a history of 30 days, once its views have caught up. Fills the folder unless that
 * was done before.
 */
export async function withFilledService<T>(
  folder: string,
  size: { readonly tasks: number; readonly runs: number },
  work: (filled: FilledService) => Promise<T>,
): Promise<T> {
  const { runs, tasks } = await fillOnce(folder, size);
  const service = await BenchService.start(folder);
  const bench = await BenchStore.open(folder);
  try {
    await bench.untilDocuments(runsProjection, runs);
    const address = `http://127.0.0.1:${service.port}`;
    await untilCaughtUp(address);
    const credentials = credentialsIn(folder);
    return await work({ service, bench, address, credentials, tasks: new Map(tasks) });
  } finally {
    await bench.close();
    await service.stop();
  }
}

interface FilledFolder {
  readonly runs: number;
  readonly tasks: readonly (readonly [title: string, id: string])[];
}

async function fillOnce(
  folder: string,
  size: { readonly tasks: number; readonly runs: number },
): Promise<FilledFolder> {
  const note = join(folder, 'filled.json');
  if (existsSync(note)) return JSON.parse(readFileSync(note, 'utf8')) as FilledFolder;
  mkdirSync(folder, { recursive: true });
  // The first start of the service makes the first agent.
  await (await BenchService.start(folder)).stop();
  const bench = await BenchStore.open(folder);
  try {
    const owner = credentialsIn(folder).agent_id;
    const { runs, tasks } = await fillStore(bench.store, { ...size, days: 30, owner });
    const filled = { runs, tasks: [...tasks] };
    writeFileSync(note, JSON.stringify(filled));
    return filled;
  } finally {
    await bench.close();
  }
}

/** Resolves when the views have caught up and no run waits. */
export async function untilCaughtUp(address: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${address}/health`);
    const { checks } = (await response.json()) as HealthReport;
    const projections = checks.find(({ name }) => name === 'projections');
    const workers = checks.find(({ name }) => name === 'workers') as { readonly waiting?: number };
    if (projections?.message === 'caught up' && workers.waiting === 0) return;
    await pause(200);
  }
}
