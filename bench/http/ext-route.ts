import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from '../../test/support/project-root.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { load } from './http-load.ts';
import { startHttpService, type HttpService } from './http-service.ts';
import { median } from '../statistics.ts';

const CONNECTIONS = 50;
/** The sides take turns, forwards and backwards, so that a slow moment of the machine hits all. */
const TURNS = 15;

/** What both routes answer: as much as a small document. */
const body = { items: Array.from({ length: 5 }, (_, n) => ({ id: n, title: `report ${n}` })) };

/** The route of the core, put among its endpoints before the service starts: from its sources, as bundles have no modules. */
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

/** Microseconds of processor time for a request, and requests a second, of one route. */
interface Side {
  readonly cpu: number;
  readonly perSecond: number;
}

/** The same route in the core and in an extension, of one process; and in the core of one without extensions. */
export interface ExtRouteBenchmark {
  readonly core: Side;
  readonly extension: Side;
  readonly alone: Side;
  /** How much more processor time the extension's route takes than the core's: the median of the turns, in percent. */
  readonly overCore: number;
  readonly overAlone: number;
}

/** @param seconds of each turn; there are fifteen for each side, after one that does not count */
export async function benchExtRoute(seconds: number): Promise<ExtRouteBenchmark> {
  const directory = await makeBenchFolder('ext-route');
  const services: HttpService[] = [];
  try {
    const { preload, folder } = await writeRoutes(directory);
    const settings = { NODE_OPTIONS: `--import tsx --import ${pathToFileURL(preload).href}` };
    const start = async (name: string, more: Readonly<Record<string, string>>) => {
      const service = await startHttpService(
        join(directory, name),
        { ...settings, ...more },
        'app/main.ts',
      );
      services.push(service);
      return service;
    };
    const both = await start('both', { SVC_EXT_PATHS: folder });
    const alone = await start('alone', {});
    const sides = {
      core: { service: both, path: '/bench/route' },
      extension: { service: both, path: '/ext/bench/route' },
      alone: { service: alone, path: '/bench/route' },
    };
    const turns = { core: [] as Side[], extension: [] as Side[], alone: [] as Side[] };
    for (let turn = 0; turn <= TURNS; turn += 1) {
      const names = ['core', 'extension', 'alone'] as const;
      for (const name of turn % 2 === 0 ? names : names.toReversed()) {
        const measured = await measure(sides[name].service, sides[name].path, seconds);
        if (turn > 0) turns[name].push(measured);
      }
    }
    const cpu = (name: keyof typeof turns): number[] => turns[name].map((each) => each.cpu);
    const over = (name: 'core' | 'alone'): number =>
      median(
        cpu('extension').map((mine, turn) => (mine / (cpu(name)[turn] ?? Number.NaN) - 1) * 100),
      );
    const sideOf = (name: keyof typeof turns): Side => ({
      cpu: median(cpu(name)),
      perSecond: median(turns[name].map(({ perSecond }) => perSecond)),
    });
    return {
      ...{ core: sideOf('core'), extension: sideOf('extension'), alone: sideOf('alone') },
      ...{ overCore: over('core'), overAlone: over('alone') },
    };
  } finally {
    for (const { process } of services) await process.stop();
    await removeBenchFolder(directory);
  }
}

async function measure(service: HttpService, path: string, seconds: number): Promise<Side> {
  const { process, headers } = service;
  const before = process.cpuSeconds();
  const { port } = process;
  const made = await load({
    port,
    connections: CONNECTIONS,
    seconds,
    headers,
    requests: [{ path }],
  });
  const cpu = ((process.cpuSeconds() - before) * 1e6) / made.latencies.length;
  return { cpu, perSecond: made.perSecond };
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

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const seconds = Number(process.argv[2] ?? 1);
  process.stdout.write(`${JSON.stringify(await benchExtRoute(seconds), null, 2)}\n`);
}
