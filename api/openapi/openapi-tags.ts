import type { JsonObject } from '../../domain/json.ts';

const descriptions = {
  namespaces: 'What keeps the agents of different teams apart.',
  agents: 'The identities that own tasks and call the service, and their tokens.',
  secrets: 'Values that steps and webhooks use, and nobody reads.',
  tasks: 'Pipelines on a schedule or a topic.',
  schedules: 'When a schedule fires.',
  backfills: 'Runs for the past times of a schedule.',
  concurrency: 'Who holds a concurrency key, and who waits for it.',
  runs: 'The runs of tasks.',
  approvals: 'What steps wait to have approved.',
  callbacks: 'Calls from outside that end the wait of a step.',
  workers: 'Your own programs that offer tools, and the jobs that they get.',
  statistics: 'Runs, counted.',
  events: 'Events under topics, which trigger tasks.',
  operations: 'Holding and releasing the whole service.',
  projections: 'The views that are built from the log.',
  replays: 'Views as of an instant in the past.',
  streams: 'The log itself.',
  audit: 'Who did what, and what was refused.',
  extensions: 'What extensions add.',
  service: 'Health, metrics and this description.',
} as const;

/** The groups of operations. */
export const tags: readonly JsonObject[] = Object.entries(descriptions).map(
  ([name, description]) => ({ name, description }),
);

/** Paths whose group is not their first segment. */
const others: Readonly<Record<string, keyof typeof descriptions>> = {
  task: 'runs',
  tools: 'tasks',
  stats: 'statistics',
  jobs: 'workers',
  oauth: 'agents',
  auth: 'agents',
  topics: 'events',
  webhooks: 'agents',
  stream: 'events',
  health: 'service',
  ext: 'extensions',
};

/** The group of a path. */
export function tagOf(path: string): string {
  const [, first = ''] = path.split('/');
  return others[first] ?? (first in descriptions ? first : 'service');
}
