// What can be done to a task, as buttons.

import { call, may } from './client.js';
import { attempt, button } from './dom.js';

/**
 * @param task as it is now
 * @param {() => Promise<void>} done called after each, to show what has become of it
 * @param {boolean} few only what lists have room for
 */
export function taskActions(task, done, few = false) {
  if (!may('tasks:write') || task.status === 'canceled') return [];
  const order = (text, verb, told, options = {}) =>
    button(
      text,
      async () => {
        const { question, kind: _kind, ...rest } = options;
        if (question !== undefined && !confirm(question)) return;
        let details;
        const work = async () => {
          const path = `tasks/${task.id}/${verb}`;
          const headers = {
            'Idempotency-Key': crypto.randomUUID?.() ?? `${Date.now()}${Math.random()}`,
          };
          ({ details } = await call('POST', path, { headers, ...rest }));
          if (verb !== 'run_now' || few) await done();
        };
        if (!(await attempt(work, `${task.title}: ${told}`))) return;
        if (verb === 'run_now' && !few) location.hash = `#/runs/${details.run_id}`;
      },
      options.kind,
    );
  const active = task.status === 'active';
  const named = `“${task.title}”`;
  return [
    order('Run now', 'run_now', 'a run is requested'),
    active ? order('Pause', 'pause', 'paused') : order('Resume', 'resume', 'resumed'),
    active &&
      task.next_run_at !== null &&
      order(few ? 'Snooze' : 'Snooze 10 min', 'snooze', 'the next fire is 10 minutes later', {
        body: { delay_seconds: 600 },
      }),
    order('Cancel', 'cancel', 'canceled', {
      question: `Cancel ${named} for ever?`,
      kind: '.danger',
    }),
  ];
}
