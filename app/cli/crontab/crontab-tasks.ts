import { createHash } from 'node:crypto';
import type { CrontabJob } from './crontab-lines.ts';

/** How the tasks of a crontab are made. */
export interface CrontabTaskOptions {
  /** Of jobs for which the crontab sets none. */
  readonly timezone: string;
  /** Where commands are sent; null: tasks log their command, and are paused. */
  readonly postUrl: string | null;
}

/** Most characters of the readable part of a name. */
const MAX_SLUG = 24;
const MAX_TITLE = 200;
const MAX_DESCRIPTION = 2_000;

/**
 * The tasks of a crontab, in the form of a file of `svc apply`.
 *
 * A task's name stands for what its line says: schedule, user, command, and a zone that the crontab sets. So a line has
 * the same task wherever it stands in the crontab, and a changed line has another one.
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
      title: cut(job.comment ?? job.command, MAX_TITLE),
      description: cut(descriptionOf(job), MAX_DESCRIPTION),
      schedule_kind: 'cron',
      schedule_expr: job.schedule,
      timezone: job.zone ?? options.timezone,
      payload: payloadOf(job, options.postUrl),
      paused: options.postUrl === null,
      // As cron does: each job once, whether the one before has ended or not, and none that was missed.
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
    .slice(0, MAX_SLUG)
    .replaceAll(/^-+|-+$/g, '');
  return slug === '' ? hash : `${slug}-${hash}`;
}

function descriptionOf({ comment, user, command }: CrontabJob): string {
  const as = user === null ? '' : ` (as ${user})`;
  return `${comment === null ? '' : `${comment}\n`}From a crontab${as}: ${command}`;
}

/** The command is a parameter, where `${HOME}` is not an expression of the pipeline. */
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

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
