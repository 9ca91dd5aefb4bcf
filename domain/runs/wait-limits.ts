import { toIso, type Instant } from '../clock.ts';
import type { Resumption, Wait } from './run-waits.ts';

/** How a wait ends when its time has come. A timer succeeds; any other wait has reached its limit. */
export function endAtLimit({ waits_for, since, until }: Wait, now: Instant): Resumption {
  const seconds = Math.round((Date.parse(until) - Date.parse(since)) / 1000);
  switch (waits_for.kind) {
    case 'timer':
      return { by: { kind: 'timer' }, result: { slept_seconds: waits_for.seconds } };
    case 'approval':
      return approvalTimeout(waits_for.on_timeout, seconds, now);
    case 'event':
      return timedOut(`no event on ${waits_for.topic} arrived within ${seconds} s`);
    case 'run':
      return timedOut(`run ${waits_for.run_id} did not end within ${seconds} s`);
    case 'callback':
      return timedOut(`no callback arrived within ${seconds} s (wait_seconds)`);
    case 'job':
      return timedOut(`no worker completed ${waits_for.tool} within ${seconds} s (wait_seconds)`);
  }
}

function timedOut(error: string): Resumption {
  return { by: { kind: 'timeout' }, error, retryable: false };
}

function approvalTimeout(
  onTimeout: 'fail' | 'reject' | 'approve',
  seconds: number,
  now: Instant,
): Resumption {
  if (onTimeout === 'fail') return timedOut(`nobody decided within ${seconds} s`);
  const approved = onTimeout === 'approve';
  const result = { approved, by: null, comment: null, at: toIso(now) };
  if (approved) return { by: { kind: 'timeout' }, result };
  return { ...timedOut(`rejected: nobody decided within ${seconds} s`), result };
}
