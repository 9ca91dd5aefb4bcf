import { findProgram } from '../test/support/required-program.ts';
import { benchAppend } from './stores/append.ts';
import { benchAsOf } from './stores/as-of.ts';
import { benchExport } from './stores/export.ts';
import { benchExtRoute } from './http/ext-route.ts';
import { httpWorks } from './http/http-works.ts';
import { benchIdle } from './scheduling/idle.ts';
import { benchKeys, benchOneKey } from './scheduling/keys.ts';
import { benchManyTasks } from './scheduling/many-tasks.ts';
import { benchNextFire } from './scheduling/next-fire.ts';
import { benchRebuild } from './stores/rebuild.ts';
import { benchRebuildReads } from './stores/rebuild-reads.ts';
import { runWorkloads, type RunWorkload } from './scheduling/runs.ts';
import { percentile } from './statistics.ts';
import { benchViews } from './stores/views.ts';
import { benchWebPage } from './webui/webui.ts';

const VIEW_DOCUMENTS = 100_000;

/** How much of each. */
export interface Amounts {
  /** Runs of `drain` and `end-to-end`. */
  readonly n: number;
  /** Tasks of `lateness`. */
  readonly due: number;
  /** Runs of `latency`. */
  readonly idle: number;
  /** Events of `rebuild` and `as-of`. */
  readonly events: number;
  /** Runs of `keys-100`. */
  readonly keyed: number;
  /** Uses of `key-million`. */
  readonly uses: number;
  /** Seconds of each turn of `http-get` and `http-post`. */
  readonly seconds: number;
  /** Runs of `http-lists`; there are a tenth as many tasks. */
  readonly listed: number;
  /** A folder in which the store of `http-lists`, `rebuild-reads` or `as-of` stays, to be used again; undefined for none. */
  readonly store: string | undefined;
  /** Clients of `sse`. */
  readonly clients: number;
}

/** What was measured, by name; the names carry the units where the figure is no ratio. */
export type Figures = Readonly<Record<string, number>>;

/** What a figure should be. */
export interface Target {
  readonly figure: string;
  readonly is: 'at least' | 'more than' | 'less than';
  readonly value: number;
  /** Where the value comes from. */
  readonly because: string;
}

/** One piece of work: measured anew, on an empty store, each time. */
export interface Work {
  readonly targets: readonly Target[];
  /** Set for what the peers' benchmark measures too: the figure that their table shows is `headline`. */
  readonly peers?: { readonly unit: 'jobs/s' | 'ms'; readonly headline: string };
  count(amounts: Amounts): number;
  measure(amounts: Amounts): Promise<Figures>;
}

const drainTargets: readonly Target[] = [
  { figure: 'jobs/s', is: 'more than', value: 3_400, because: 'graphile-worker' },
  { figure: 'jobs/s', is: 'more than', value: 3_700, because: 'pg-boss, its slower figure' },
  { figure: 'jobs/s', is: 'more than', value: 7_700, because: 'BullMQ, synced' },
  { figure: 'jobs/s', is: 'more than', value: 9_000, because: 'pg-boss, its faster figure' },
];
const endToEndTargets: readonly Target[] = [
  {
    figure: 'jobs/s',
    is: 'more than',
    value: 5_500,
    because: 'the aim',
  },
];
const latenessTargets: readonly Target[] = [
  { figure: 'RunStarted p99 ms', is: 'less than', value: 50, because: 'the aim' },
  { figure: 'p99 ms', is: 'less than', value: 50, because: 'the same to the first step' },
];
const latencyTargets: readonly Target[] = [
  { figure: 'p99 ms', is: 'less than', value: 15, because: 'the aim' },
];

const webPage: Work = {
  targets: [
    { figure: 'script ms, most', is: 'less than', value: 200, because: 'no view is slow' },
    { figure: 'first paint ms', is: 'less than', value: 1_000, because: 'on a local start' },
    { figure: 'KB', is: 'less than', value: 300, because: 'over the wire' },
    { figure: 'errors', is: 'less than', value: 1, because: 'in the console' },
  ],
  count: () => 100_000,
  async measure() {
    const { views, firstPaint, kilobytes, errors } = await benchWebPage();
    const scripts = views.map(({ view, script }) => [`${view} ms`, script] as const);
    return {
      'script ms, most': Math.max(...views.map(({ script }) => script)),
      'first paint ms': firstPaint,
      KB: kilobytes,
      errors: errors.length,
      ...Object.fromEntries(scripts),
    };
  },
};

/** All works by name, in the order in which they are done. */
export const works: Readonly<Record<string, Work>> = {
  append: {
    targets: [{ figure: 'ratio', is: 'at least', value: 0.5, because: 'beside the bare driver' }],
    count: () => 30_000,
    async measure() {
      const { ours, raw, ratio, batch } = await benchAppend();
      return { 'appends/s': ours, 'raw appends/s': raw, ratio, 'events a commit': batch };
    },
  },
  'drain-64': runs('drain-64', 'n', drainTargets),
  'drain-10': runs('drain-10', 'n', drainTargets),
  'end-to-end-64': runs('end-to-end-64', 'n', endToEndTargets),
  'end-to-end-10': runs('end-to-end-10', 'n', []),
  'lateness-instant': runs('lateness-instant', 'due', latenessTargets),
  'lateness-spread': runs('lateness-spread', 'due', latenessTargets),
  latency: runs('latency', 'idle', latencyTargets),
  'keys-100': {
    targets: [
      { figure: 'ratio', is: 'at least', value: 0.5, because: 'beside the same without keys' },
    ],
    count: ({ keyed }) => keyed,
    async measure({ keyed: n }) {
      const { keyed, free } = await benchKeys(n);
      return {
        'runs/s': keyed.rate,
        'runs/s without keys': free.rate,
        ratio: keyed.rate / free.rate,
        'cpu us a run': keyed.cpu,
        'cpu us without keys': free.cpu,
        'key events a run': keyed.keyEvents,
      };
    },
  },
  'key-million': {
    targets: [
      { figure: 'last/first', is: 'less than', value: 1.25, because: 'the past costs nothing' },
      { figure: 'events left', is: 'less than', value: 1_000, because: 'streams of keys are cut' },
    ],
    count: ({ uses }) => uses,
    async measure({ uses }) {
      const { first, last, left, alone } = await benchOneKey(uses);
      return {
        'first uses ms': first.milliseconds,
        'last uses ms': last.milliseconds,
        'first uses cpu us': first.cpu,
        'last uses cpu us': last.cpu,
        'last/first': last.cpu / first.cpu,
        'events left': left,
        'uses, one at a time': alone,
      };
    },
  },
  rebuild: {
    targets: [
      { figure: 'ratio', is: 'at least', value: 0.25, because: 'beside plain reading and parsing' },
    ],
    count: ({ events }) => events,
    async measure({ events }) {
      const { ours, raw, ratio } = await benchRebuild({ events });
      return { 'events/s': ours, 'plain events/s': raw, ratio };
    },
  },
  'rebuild-reads': {
    targets: [
      { figure: 'p95/before', is: 'less than', value: 1.5, because: 'the aim' },
      { figure: 'failed', is: 'less than', value: 1, because: 'reads never stop' },
      { figure: 'memory/first tenth', is: 'less than', value: 1.5, because: 'flat memory' },
    ],
    count: ({ events }) => events,
    async measure({ events, store }) {
      const folder = store === undefined ? {} : { directory: store };
      const result = await benchRebuildReads({ events, ...folder });
      const [before, during] = [result.before, result.during].map((took) => percentile(took, 0.95));
      const { failed, rate, progress, memory, resident } = result;
      return {
        'p95 ms before': before ?? 0,
        'p95 ms': during ?? 0,
        'p95/before': (during ?? 0) / (before ?? 1),
        'p99 ms': percentile(result.during, 0.99),
        reads: result.during.length,
        failed,
        'events/s': rate,
        'made %': progress * 100,
        'memory MiB before': memory.before,
        'memory MiB': Math.max(...memory.during),
        'memory/first tenth': Math.max(...memory.during) / (memory.during[0] ?? 1),
        'resident MiB': resident,
      };
    },
  },
  'as-of': {
    targets: [
      { figure: 'run p99 ms', is: 'less than', value: 20, because: 'the aim' },
      { figure: 'task p99 ms', is: 'less than', value: 20, because: 'the aim' },
    ],
    count: ({ events }) => events,
    async measure({ events, store }) {
      const folder = store === undefined ? {} : { directory: store };
      const { runs, tasks } = await benchAsOf({ events, ...folder });
      return {
        'run p50 ms': percentile(runs, 0.5),
        'run p99 ms': percentile(runs, 0.99),
        'task p50 ms': percentile(tasks, 0.5),
        'task p99 ms': percentile(tasks, 0.99),
      };
    },
  },
  export: {
    targets: [
      { figure: 'ndjson events/s', is: 'at least', value: 100_000, because: 'the aim' },
      { figure: 'memory MiB', is: 'less than', value: 200, because: 'whatever the log is long' },
    ],
    count: ({ events }) => events,
    async measure({ events }) {
      const result = await benchExport({ events });
      return {
        'ndjson events/s': result.ndjson,
        'csv events/s': result.csv,
        'archive events/s': result.archive,
        'import events/s': result.imported,
        'backup s': result.backup,
        'ndjson MiB': result.mebibytes,
        'memory MiB': result.memory,
      };
    },
  },
  views: {
    targets: [],
    count: () => VIEW_DOCUMENTS,
    async measure() {
      const result = await benchViews(VIEW_DOCUMENTS);
      return {
        'filled/s': result.bulkPerSecond,
        'changed/s': result.livePerSecond,
        'added/s': result.livePerSecondNew,
        'get us': result.getMicroseconds,
        'page ms': result.pageMilliseconds,
        'page by cursor ms': result.cursorMilliseconds,
        'page by offset ms': result.offsetMilliseconds,
        'count ms': result.countMilliseconds,
      };
    },
  },
  'next-fire': {
    targets: [
      { figure: 'next/s', is: 'at least', value: 5_000, because: 'the aim' },
      { figure: 'daily over rrule', is: 'at least', value: 10, because: 'beside the package' },
    ],
    count: () => 1_000,
    async measure() {
      const result = benchNextFire();
      return {
        'next/s': result.nextPerSecond,
        'compile and next/s': result.compileAndNextPerSecond,
        'slowest ms': result.slowestMs,
        'daily next/s': result.daily.ours,
        'daily next/s of rrule': result.daily.rrulePackage,
        'daily over rrule': result.daily.ours / result.daily.rrulePackage,
      };
    },
  },
  'ext-route': {
    targets: [
      {
        figure: 'over the core %',
        is: 'less than',
        value: 10,
        because: 'processor time of the same route in an extension',
      },
    ],
    count: () => 15,
    async measure() {
      const result = await benchExtRoute(1);
      return {
        'over the core %': result.overCore,
        'over a core without extensions %': result.overAlone,
        'extension cpu us': result.extension.cpu,
        'core cpu us': result.core.cpu,
        'alone cpu us': result.alone.cpu,
        'extension/s': result.extension.perSecond,
        'core/s': result.core.perSecond,
      };
    },
  },
  idle: {
    targets: [
      { figure: 'cpu %', is: 'less than', value: 2, because: 'of one core, with 10,000 tasks' },
      { figure: 'resident MiB', is: 'less than', value: 200, because: 'with 10,000 tasks' },
    ],
    count: () => 10_000,
    async measure() {
      const result = await benchIdle();
      return {
        'cpu %': result.cpuPercent,
        'resident MiB': result.residentMiB,
        'ready s': result.readySeconds,
        'first ready s': result.firstReadySeconds,
      };
    },
  },
  'tasks-100k': {
    targets: [
      { figure: 'ready s', is: 'less than', value: 5, because: 'the scheduler is ready' },
      { figure: 'cpu %', is: 'less than', value: 5, because: 'of one core, little being due' },
      { figure: 'resident MiB', is: 'less than', value: 400, because: 'with 100,000 tasks' },
      { figure: 'create ms', is: 'less than', value: 100, because: 'a new task counts' },
      { figure: 'update ms', is: 'less than', value: 100, because: 'a changed one counts' },
      { figure: 'pause ms', is: 'less than', value: 100, because: 'a paused one does not fire' },
    ],
    count: () => 100_000,
    async measure() {
      const result = await benchManyTasks();
      return {
        'ready s': result.readySeconds,
        'cpu %': result.cpuPercent,
        'resident MiB': result.residentMiB,
        'create ms': result.createMs,
        'update ms': result.updateMs,
        'pause ms': result.pauseMs,
      };
    },
  },
  ...httpWorks,
  // Needs a browser.
  ...(findProgram('chromium') !== undefined ? { webui: webPage } : {}),
};

function runs(name: RunWorkload, amount: 'n' | 'due' | 'idle', targets: readonly Target[]): Work {
  const { unit, run } = runWorkloads[name];
  return {
    targets,
    peers: { unit, headline: unit === 'ms' ? 'p99 ms' : 'jobs/s' },
    count: (amounts) => amounts[amount],
    async measure(amounts) {
      const measured = await run(amounts[amount]);
      if ('rate' in measured) return { 'jobs/s': measured.rate, 'cpu us a run': measured.cpu };
      const { samples, toRunStarted } = measured;
      return {
        'p50 ms': percentile(samples, 0.5),
        'p99 ms': percentile(samples, 0.99),
        'worst ms': percentile(samples, 1),
        'RunStarted p50 ms': percentile(toRunStarted, 0.5),
        'RunStarted p99 ms': percentile(toRunStarted, 0.99),
        'RunStarted worst ms': percentile(toRunStarted, 1),
      };
    },
  };
}
