import { scheduleJob } from 'node-schedule';
import type { Timer } from '../scheduler.ts';

/** Never later than this is the time looked at again: a machine may have slept. Milliseconds. */
const LONGEST = 10_000;

/**
 * The scheduler's one timer, by node-schedule. A job that is far away is set in stretches, so that a clock that was
 * put right, or a machine that slept, makes a fire late by a stretch at the most.
 */
export const nodeScheduleTimer: Timer = (at, callback) => {
  let cancel = (): void => {};
  const set = (): void => {
    const now = Date.now();
    // node-schedule refuses what has passed: such a job is due at once.
    const due = Math.max(Math.min(at, now + LONGEST), now + 1);
    const job = scheduleJob(new Date(due), () => {
      if (Date.now() >= at) callback();
      else set();
    });
    if (job === null) {
      const immediate = setImmediate(Date.now() >= at ? callback : set);
      cancel = () => clearImmediate(immediate);
    } else {
      cancel = () => void job.cancel();
    }
  };
  set();
  return () => cancel();
};
