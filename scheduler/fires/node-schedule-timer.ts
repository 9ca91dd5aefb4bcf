import { scheduleJob } from 'node-schedule';
import type { Timer } from '../scheduler.ts';

/** The clock is checked at least this often, because the machine may sleep. Milliseconds. */
const CHECK_INTERVAL = 10_000;

/** A job is given up when it is this late. Milliseconds. */
const MAX_LATENESS = 50;

/**
 * The scheduler's timer, by node-schedule. A distant job is set in intervals: after the clock is corrected or the machine
 * sleeps, a fire is late by at most one interval.
 *
 * When the clock is set back, a node-schedule job waits that much longer and cannot be canceled. So a plain timer runs
 * beside it.
 */
export const nodeScheduleTimer: Timer = (at, callback) => {
  let cancel = (): void => {};
  const set = (): void => {
    const now = Date.now();
    // node-schedule rejects past dates. A job with a past date is due at once.
    const due = Math.max(Math.min(at, now + CHECK_INTERVAL), now + 1);
    let waits = true;
    const look = (): void => {
      if (!waits) return;
      cancel();
      if (Date.now() >= at) callback();
      else set();
    };
    const job = scheduleJob(new Date(due), look);
    const beside = setTimeout(look, job === null ? 0 : due - now + MAX_LATENESS);
    cancel = () => {
      waits = false;
      clearTimeout(beside);
      job?.cancel();
    };
  };
  set();
  return () => cancel();
};
