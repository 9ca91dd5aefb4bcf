// The report of the service's health, which everybody may read.

import { call } from './client.js';

/** @returns `{status, version, timestamp, checks}` @throws {RefusalError} if there is no report */
export async function readHealth(signal) {
  try {
    return await call('GET', 'health', { signal });
  } catch (error) {
    // That of an unhealthy service comes as a refusal.
    if (error.body?.checks === undefined) throw error;
    return error.body;
  }
}
