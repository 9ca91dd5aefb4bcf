import { createSecretKey } from 'node:crypto';
import type { ApiSettings } from '../../api/dependencies.ts';

/** Settings of an interface in a test, without limits unless a test sets them. */
export const plainSettings: ApiSettings = {
  version: '0.0.0',
  production: false,
  maxBodyBytes: 1_048_576,
  trustProxy: 0,
  corsOrigins: undefined,
  publicUrl: undefined,
  rateLimit: 1_000_000,
  rateLimitWindowSeconds: 60,
  accessTokenSeconds: 3600,
  refreshTokenSeconds: 86_400,
  pageSessionSeconds: 43_200,
  allowSecretless: false,
  people: null,
  auditReads: false,
  jobLeaseSeconds: 30,
  jobHeartbeatSeconds: 10,
  sharing: { waitingRunsPerAgent: 0, waitingRunsPerNamespace: 0, liveStreamsPerAgent: 0 },
  tokenKeys: { jwtKey: createSecretKey(Buffer.alloc(32, 7)), previousJwtKey: null },
};

/** Tools run in workers, and there are none here. */
export const noActions = {
  publishEvent: () => Promise.reject(new Error('there is no worker')),
  runTask: () => Promise.reject(new Error('there is no worker')),
};
