// What can be done to a task, as buttons.

import { mayChange, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import { attempt, button, choice, h, notify } from './dom.js';
import { maySee } from './names.js';
import { inZone } from './times.js';

const delays = [
  ['600', '10 minutes'],
  ['3600', 'an hour'],
  ['14400', '4 hours'],
  ['86400', 'a day'],
  ['604800', 'a week'],
];
const missed = [
  ['skip', 'none: go on with the next one'],
  ['latest', 'the latest'],
  ['all', 'all'],
];

/**
 * @param task as it is now
 * @param {() => Promise<void>} done called after each, to show what has become of it
 * @param {boolean} small as lists have room for
 */
export function taskActions(task, done, small = false) {
  if (!mayChange(task) || task.status === 'canceled') return [];
  const active = task.status === 'active';
  const size = small ? '.small' : '';
  const command = (verb, options) => order(`tasks/${task.id}/${verb}`, options);
  const act = (text, work, kind = '') =>
    button(text, work, kind + size, small ? { 'aria-label': `${text} ${task.title}` } : {});
  const asking = (text, options, kind) =>
    act(
      text,
      async () => {
        if (await ask({ ...options, fields: [...(options.fields ?? []), reasonField] })) {
          await attempt(done);
        }
      },
      kind,
    );
  return [
    act(small ? 'Run' : 'Run now', async () => {
      let run;
      const went = await attempt(async () => (run = (await command('run_now')).details));
      if (!went) return;
      if (run.skip_reason !== undefined || run.deduplicated === true) {
        notify(`${task.title}: it does not run (${run.skip_reason ?? 'duplicate'}).`);
      } else notify(`${task.title}: a run is requested.`);
      const to = `runs/${run.run_id}`;
      if (small || !maySee(to)) await attempt(done);
      else location.hash = `#/${to}`;
    }),
    active
      ? asking('Pause', {
          title: `Pause “${task.title}”?`,
          text: 'Its fires are held back until it is resumed. What runs goes on.',
          action: 'Pause',
          act: ({ reason }) => command('pause', { reason }),
          done: `${task.title}: paused`,
        })
      : asking('Resume', {
          title: `Resume “${task.title}”?`,
          action: 'Resume',
          fields: [
            {
              name: 'missed',
              label: 'Of the fires that the pause held back, run',
              control: () => choice(missed, 'skip'),
            },
          ],
          act: ({ reason, missed: which }) =>
            command('resume', { reason, query: { missed: which } }),
          done: `${task.title}: resumed`,
        }),
    active &&
      task.next_run_at !== null &&
      asking('Snooze', {
        title: `Put the next fire of “${task.title}” off?`,
        text: 'It keeps its nominal time and runs later. What comes due in between does not run.',
        action: 'Snooze',
        fields: [
          {
            name: 'delay_seconds',
            label: 'By',
            control: () => choice(delays, '600'),
          },
        ],
        act: ({ delay_seconds, reason }) =>
          command('snooze', { reason, body: { delay_seconds: Number(delay_seconds) } }),
        done: `${task.title}: the next fire is put off`,
      }),
    asking(
      'Cancel',
      {
        title: `Cancel “${task.title}” for ever?`,
        text: 'It never fires again. Queued runs are canceled, running ones told to stop.',
        action: 'Cancel the task',
        kind: '.danger',
        act: ({ reason }) => command('cancel', { reason }),
        done: `${task.title}: canceled`,
      },
      '.danger',
    ),
  ];
}

/** Runs times of the past: asks for the span, shows what would be run, and orders it. */
export function backfillButton(task, done) {
  if (!mayChange(task) || task.status === 'canceled' || task.schedule_kind === 'event') return null;
  const local = (name, label, value) => ({
    name,
    label,
    control: () => h('input', { type: 'datetime-local', step: 1, value }),
  });
  const bodyOf = ({ from, to, only, concurrency }, dry_run) => ({
    // Without an offset: in the task's own zone.
    ...{ from, to, only, dry_run },
    concurrency: Number(concurrency),
  });
  return button('Backfill …', async () => {
    const yesterday = dayBefore(inZone(new Date().toISOString(), task.timezone));
    const went = await ask({
      title: `Run times of the past of “${task.title}”`,
      text: `By the schedule as it stands now. Times are in the task’s zone, ${task.timezone}.`,
      action: 'Backfill',
      fields: [
        local('from', 'From', `${yesterday}T00:00:00`),
        local('to', 'To', `${yesterday}T23:59:59`),
        {
          name: 'only',
          label: 'Which',
          control: () =>
            choice(
              [
                ['missing', 'those that have not run'],
                ['all', 'all'],
              ],
              'missing',
            ),
        },
        {
          name: 'concurrency',
          label: 'At once',
          control: () => h('input', { type: 'number', min: 1, max: 100, value: 5 }),
        },
        reasonField,
      ],
      preview: {
        action: 'What would run?',
        async act(values) {
          const { details } = await order(`tasks/${task.id}/backfill`, {
            body: bodyOf(values, true),
          });
          const { total, existing, to_request, first } = details;
          return h(
            'div.told',
            {},
            h(
              'p',
              {},
              `${total} times of the schedule, ${existing} of them have run: ${to_request} would be run.`,
            ),
            first.length > 0 &&
              h(
                'p.hint',
                {},
                first
                  .slice(0, 5)
                  .map((at) => inZone(at, task.timezone))
                  .join(', '),
                first.length > 5 && ' …',
              ),
          );
        },
      },
      act: (values) =>
        order(`tasks/${task.id}/backfill`, { reason: values.reason, body: bodyOf(values, false) }),
      done: 'The backfill is under way.',
    });
    if (went) await attempt(done);
  });
}

/** The day before a local time, by the calendar: a day of a clock change has other hours than 24. */
const dayBefore = (local) =>
  new Date(Date.parse(local.slice(0, 10)) - 86_400_000).toISOString().slice(0, 10);
