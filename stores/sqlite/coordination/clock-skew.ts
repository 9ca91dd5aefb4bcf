/**
 * Rows that start further in the future than this are ignored. The clock has been set back since, and their end may be
 * hours away. Smaller differences come from concurrent calls that arrive out of order. Milliseconds.
 */
export const MAX_CLOCK_SKEW_MS = 1000;
