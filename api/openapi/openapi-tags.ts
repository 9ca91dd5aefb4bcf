import type { JsonObject } from '../../domain/json.ts';

const descriptions = {
  namespaces: 'Separate spaces for the agents of different teams.',
  agents: 'The identities that own tasks and call the service, and their tokens.',
  secrets: 'Values that steps and webhooks can use but nobody can read.',
  tasks: 'Pipelines that run on a schedule or on events of a topic.',
  schedules: 'When a schedule fires.',
  backfills: 'Runs for the past times of a schedule.',
  concurrency: 'Runs that hold a concurrency key or wait for it.',
  runs: 'The runs of tasks.',
  approvals: 'Requests of steps that wait for a decision.',
  callbacks: 'Calls from outside that end the wait of a step.',
  workers: 'Your own programs that offer tools, and the jobs that they get.',
  statistics: 'Counts and durations of runs.',
  events: 'Events that are published under topics and trigger tasks.',
  operations: 'The hold of the whole service, and its release.',
  projections: 'The views that are built from the log.',
  replays: 'Views as of an instant in the past.',
  streams: 'The log itself.',
  audit: 'Commands of agents, and refused requests.',
  extensions: 'Endpoints of extensions.',
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
