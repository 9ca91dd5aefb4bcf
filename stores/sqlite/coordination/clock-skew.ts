/**
 * Rows that start further in the future than this are ignored: the clock has been set back since, and their end may lie
 * hours ahead. Concurrent calls may come out of order by less. Milliseconds.
 */
export const MAX_CLOCK_SKEW_MS = 1000;
