import { createHash } from 'node:crypto';
import type { CrontabJob } from './parse-crontab.ts';

/** Options for the tasks of a crontab. */
export interface CrontabTaskOptions {
  /** For jobs without a zone. */
  readonly timezone: string;
  /** Receives the commands; null: tasks log their command and are paused. */
  readonly postUrl: string | null;
}

/** Characters of the readable part of a name. */
const MAX_SLUG_LENGTH = 24;
const MAX_TITLE_LENGTH = 200;
const MAX_DESCRIPTION_LENGTH = 2_000;

/**
 * The tasks of a crontab, as in a file of `svc apply`.
 *
 * A task's name is a hash of its schedule, user, command and zone. A moved line keeps its task; a changed line gets a
 * new one.
 */
export function crontabTasks(
  jobs: readonly CrontabJob[],
  options: CrontabTaskOptions,
): readonly Readonly<Record<string, unknown>>[] {
  const used = new Map<string, number>();
  return jobs.map((job) => {
    const name = nameOf(job);
    const count = (used.get(name) ?? 0) + 1;
    used.set(name, count);
    return {
      name: count === 1 ? name : `${name}-${count}`,
      title: cut(job.comment ?? job.command, MAX_TITLE_LENGTH),
      description: cut(descriptionOf(job), MAX_DESCRIPTION_LENGTH),
      schedule_kind: 'cron',
      schedule_expr: job.schedule,
      timezone: job.zone ?? options.timezone,
      payload: payloadOf(job, options.postUrl),
      paused: options.postUrl === null,
      // As cron does: no retries, overlapping runs, no missed runs.
      max_retries: 0,
      overlap_policy: 'allow',
      misfire_policy: 'skip',
    };
  });
}

function nameOf({ schedule, user, command, stdin, zone }: CrontabJob): string {
  const content = JSON.stringify([schedule.split(/\s+/), user, command, stdin, zone]);
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 8);
  const slug = command
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_LENGTH)
    .replaceAll(/^-+|-+$/g, '');
  return slug === '' ? hash : `${slug}-${hash}`;
}

function descriptionOf({ comment, user, command }: CrontabJob): string {
  const as = user === null ? '' : ` (as ${user})`;
  return `${comment === null ? '' : `${comment}\n`}From a crontab${as}: ${command}`;
}

/** The command is a parameter, so that `${HOME}` in it is not an expression of the pipeline. */
function payloadOf({ command, stdin, user }: CrontabJob, url: string | null): object {
  const job = {
    command,
    ...(stdin === null ? {} : { stdin }),
    ...(user === null ? {} : { user }),
  };
  const step =
    url === null
      ? { id: 'command', uses: 'log', with: { message: '${params.job.command}' } }
      : {
          id: 'command',
          uses: 'http.request',
          with: { method: 'POST', url, body: '${params.job}' },
        };
  return { params: { job }, pipeline: [step] };
}

function cut(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}
