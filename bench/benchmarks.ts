import { findProgram } from '../test/support/required-program.ts';
import { clusterBenchmarks } from './cluster/cluster.ts';
import { decisionBenchmarks } from './cluster/decisions.ts';
import { extRoute } from './http/ext-route.ts';
import { httpGet, httpPost } from './http/http-beside-express.ts';
import { httpLists } from './http/http-lists.ts';
import { sse } from './http/sse.ts';
import { costlyExpressions } from './scheduling/costly-expressions.ts';
import { externalJobs } from './scheduling/external-jobs.ts';
import { idle } from './scheduling/idle.ts';
import { manyKeys, oneKey } from './scheduling/keys.ts';
import { manyTasks } from './scheduling/many-tasks.ts';
import { nextFire } from './scheduling/next-fire.ts';
import { runBenchmarks } from './scheduling/runs.ts';
import { append } from './stores/append.ts';
import { asOf } from './stores/as-of.ts';
import { exportLog } from './stores/export.ts';
import { rebuildReads } from './stores/rebuild-reads.ts';
import { rebuild } from './stores/rebuild.ts';
import { views } from './stores/views.ts';
import { webPage } from './webui/webui.ts';
import type { Benchmark } from './benchmark.ts';

/** All benchmarks by name, in their order. */
export const benchmarks: Readonly<Record<string, Benchmark>> = {
  append,
  ...runBenchmarks,
  'external-jobs': externalJobs,
  'costly-expressions': costlyExpressions,
  'keys-100': manyKeys,
  'key-million': oneKey,
  rebuild,
  'rebuild-reads': rebuildReads,
  'as-of': asOf,
  export: exportLog,
  views,
  'next-fire': nextFire,
  'ext-route': extRoute,
  idle,
  'tasks-100k': manyTasks,
  ...clusterBenchmarks,
  ...decisionBenchmarks,
  'http-get': httpGet,
  'http-post': httpPost,
  'http-lists': httpLists,
  sse,
  // Needs a browser.
  ...(findProgram('chromium') === undefined ? {} : { webui: webPage }),
};
