import { scheduleJob } from 'node-schedule';
import type { Timer } from '../scheduler.ts';

/** Never later than this is the time looked at again: a machine may have slept. Milliseconds. */
const LONGEST = 10_000;

/** After which a job whose time should have come is not waited for any more. Milliseconds. */
const LATE = 50;

/**
 * The scheduler's one timer, by node-schedule. A job that is far away is set in stretches, so that a clock that was
 * put right, or a machine that slept, makes a fire late by a stretch at the most.
 *
 * A job that finds its clock put back waits for as long as it was put back by, and can't be canceled then. So it is not
 * relied upon: a plain timer of the same length goes beside it.
 */
export const nodeScheduleTimer: Timer = (at, callback) => {
  let cancel = (): void => {};
  const set = (): void => {
    const now = Date.now();
    // node-schedule refuses what has passed: such a job is due at once.
    const due = Math.max(Math.min(at, now + LONGEST), now + 1);
    let waits = true;
    const look = (): void => {
      if (!waits) return;
      cancel();
      if (Date.now() >= at) callback();
      else set();
    };
    const job = scheduleJob(new Date(due), look);
    const beside = setTimeout(look, job === null ? 0 : due - now + LATE);
    cancel = () => {
      waits = false;
      clearTimeout(beside);
      job?.cancel();
    };
  };
  set();
  return () => cancel();
};
