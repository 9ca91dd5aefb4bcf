// The service's health report, which everybody may read.

import { call } from './client.js';

/** @returns `{status, version, timestamp, checks}` @throws {RefusalError} if there is no report */
export async function readHealth(signal) {
  try {
    return await call('GET', 'health', { signal });
  } catch (error) {
    // The report of an unhealthy service arrives as an error response.
    if (error.body?.checks === undefined) throw error;
    return error.body;
  }
}
