import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from '../../test/support/project-root.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { median } from '../statistics.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { load } from './http-load.ts';
import { startHttpService, type HttpService } from './http-service.ts';

const CONNECTIONS = 50;
/** Turns of each side, forwards and backwards, so that a slow moment of the machine affects all. */
const TURNS = 15;
const TURN_SECONDS = 1;

/** The response of all routes, as large as a small document. */
const body = { items: Array.from({ length: 5 }, (_, n) => ({ id: n, title: `report ${n}` })) };

/** Adds a route to the core's endpoints before the service starts, from the sources: a bundle has no modules. */
const coreRoute = `import { isMainThread } from 'node:worker_threads';
if (isMainThread) {
  const { endpoints } = await import(${JSON.stringify(pathToFileURL(join(projectRoot, 'api/app.ts')).href)});
  const body = ${JSON.stringify(body)};
  endpoints.push({
    method: 'get', paths: ['/bench/route'], operationId: 'bench', summary: 'answers', scopes: [], answers: {},
    handle: () => ({ body }),
  });
}
`;

const extension = `const body = ${JSON.stringify(body)};
export function setup({ routes }) {
  routes.get('/route', (_request, response) => response.json(body));
}
`;

const manifest = {
  id: 'bench',
  name: 'Bench',
  version: '1.0.0',
  module: 'bench.mjs',
  capabilities: ['ROUTES'],
};

/** The same route in an extension, in the core beside it, and in the core of a service without extensions. */
export const extRoute: Benchmark = {
  targets: [lessThan('over the core %', 10, 'processor time of the same route in an extension')],
  count: () => TURNS,
  measure: () => withBenchFolder('ext-route', measure),
};

async function measure(directory: string): Promise<Figures> {
  const services: HttpService[] = [];
  try {
    const { preload, folder } = await writeRoutes(directory);
    const options = { NODE_OPTIONS: `--import tsx --import ${pathToFileURL(preload).href}` };
    const start = async (name: string, settings: Readonly<Record<string, string>>) => {
      const place = join(directory, name);
      const service = await startHttpService(place, { ...options, ...settings }, 'app/main.ts');
      services.push(service);
      return service;
    };
    const both = await start('both', { SVC_EXT_PATHS: folder });
    const core = new Side(both, '/bench/route');
    const extended = new Side(both, '/ext/bench/route');
    const alone = new Side(await start('alone', {}), '/bench/route');
    const sides = [core, extended, alone];
    for (let turn = 0; turn <= TURNS; turn += 1) {
      for (const side of turn % 2 === 0 ? sides : sides.toReversed()) await side.take(turn > 0);
    }
    /** The median over the turns, in percent. */
    const over = (other: Side): number =>
      median(extended.cpu.map((cpu, turn) => (cpu / (other.cpu[turn] ?? Number.NaN) - 1) * 100));
    return {
      'over the core %': over(core),
      'over a core without extensions %': over(alone),
      'extension cpu us': median(extended.cpu),
      'core cpu us': median(core.cpu),
      'alone cpu us': median(alone.cpu),
      'extension/s': median(extended.perSecond),
      'core/s': median(core.perSecond),
    };
  } finally {
    for (const { process } of services) await process.stop();
  }
}

/** One route of one service, with the figures of its turns. */
class Side {
  /** Microseconds of processor time for each request. */
  readonly cpu: number[] = [];
  readonly perSecond: number[] = [];
  readonly #service: HttpService;
  readonly #path: string;

  constructor(service: HttpService, path: string) {
    this.#service = service;
    this.#path = path;
  }

  async take(isCounted: boolean): Promise<void> {
    const { process, headers } = this.#service;
    const before = process.cpuSeconds();
    const { latencies, perSecond } = await load({
      port: process.port,
      connections: CONNECTIONS,
      seconds: TURN_SECONDS,
      headers,
      requests: [{ path: this.#path }],
    });
    if (!isCounted) return;
    this.cpu.push(((process.cpuSeconds() - before) * 1e6) / latencies.length);
    this.perSecond.push(perSecond);
  }
}

async function writeRoutes(directory: string): Promise<{ preload: string; folder: string }> {
  const preload = join(directory, 'core-route.mjs');
  const folder = join(directory, 'bench');
  await mkdir(folder);
  await writeFile(preload, coreRoute);
  await writeFile(join(folder, 'bench.mjs'), extension);
  await writeFile(join(folder, 'extension.json'), JSON.stringify(manifest));
  return { preload, folder };
}
